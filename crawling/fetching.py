"""One page, fetched through the guarded door, as a fact: an answer or a failure."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils import timezone

from common.errors import Refused
from common.http import Egress, FetchFailed
from common.proxying import ProxyAddress
from common.retry_after import retry_after_seconds
from common.urls import host_of
from crawling.leases import Claim
from crawling.models import CrawlTask

Category = CrawlTask.Category
TYPES = ("text/", "application/xhtml", "application/xml", "application/json")
# Answers that say "not now": the host is left alone for a while.
BUSY = (429, 503)


@dataclass(frozen=True, slots=True)
class Failure:
    category: str
    message: str
    transient: bool
    # Transport failures open the breaker; answers such as 404 do not.
    counts_against_host: bool = False
    trace: str = ""
    # Nothing is known of the shop: the page is asked for again another way.
    via_proxy: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """What came back for a claim. ``failure`` is None when there is a page to read."""

    claim: Claim
    fetched_at: dt.datetime
    failure: Failure | None = None
    status: int | None = None
    url: str = ""
    body: bytes = b""
    elapsed_ms: int | None = None
    retry_after_seconds: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy_id: uuid.UUID | None = None

    @property
    def content_hash(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


async def fetch(
    egress: Egress, claim: Claim, *, user_agent: str, proxy: ProxyAddress | None = None
) -> Page:
    fetched_at = timezone.now()
    try:
        answer = await egress.request(
            "GET",
            claim.url,
            headers={"User-Agent": user_agent},
            proxy=proxy,
            # Another host has a pace, rules and a lease of its own.
            may_follow=lambda target: same_shop(claim.url, target),
        )
    except Refused as refused:
        return Page(claim, fetched_at, Failure(Category.BLOCKED, refused.detail, transient=False))
    except FetchFailed as failed:
        failure = Failure(
            failed.category,
            str(failed),
            failed.transient,
            failed.transient and not failed.via_proxy,
            via_proxy=failed.via_proxy,
        )
        return Page(claim, fetched_at, failure)
    return Page(
        claim,
        fetched_at,
        judge(answer.status, answer.headers, answer.body),
        status=answer.status,
        url=answer.url,
        body=answer.body,
        elapsed_ms=answer.elapsed_ms,
        retry_after_seconds=retry_after(answer.status, answer.headers, fetched_at),
        headers=answer.headers,
    )


def judge(status: int, headers: Mapping[str, str], body: bytes) -> Failure | None:
    """Is this answer a page to read? If not, is it worth asking again?"""
    if status in BUSY:
        return Failure(Category.HTTP, f"the shop answered {status}", transient=True)
    if status >= 500:
        message = f"the shop answered {status}"
        return Failure(Category.HTTP, message, transient=True, counts_against_host=True)
    if status in (401, 403):
        return Failure(Category.BLOCKED, f"the shop refused with {status}", transient=True)
    if status >= 300:
        return Failure(Category.HTTP, f"the shop answered {status}", transient=False)
    kind = headers.get("Content-Type", "text/html").lower()
    if not kind.startswith(TYPES):
        return Failure(Category.VALIDATION, f"not a page: {kind[:80]}", transient=False)
    if not body:
        return Failure(Category.VALIDATION, "the page is empty", transient=True)
    return None


def retry_after(status: int, headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """Seconds the host asked to be left alone; None where it did not."""
    if status not in BUSY:
        return None
    return retry_after_seconds(headers.get("Retry-After", ""), now=now)


def same_shop(url: str, target: str) -> bool:
    """The same host, with or without ``www.``."""
    return host_of(url).removeprefix("www.") == host_of(target).removeprefix("www.")
