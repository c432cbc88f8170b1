"""One page, fetched through the guarded door, as a fact: an answer or a failure."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.utils import timezone

from common.errors import Refused
from common.http import Egress, FetchFailed, Response
from common.proxying import ProxyAddress
from common.retry_after import retry_after_seconds
from common.urls import host_of, normalize_url, url_hash
from crawling import pages
from crawling.leases import Claim
from crawling.models import CrawlTask
from crawling.validators import Validator

Category = CrawlTask.Category
TYPES = ("text/", "application/xhtml", "application/xml", "application/json")
# Sitemaps come packed, too, and larger than any page.
SITEMAP = "sitemap"
PACKED_TYPES = ("application/gzip", "application/x-gzip", "application/octet-stream")
SITEMAP_BYTES = 50 * 1024 * 1024
# Answers that say "not now": the host is left alone for a while.
BUSY = (429, 503)
NOT_MODIFIED = 304


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


ELSEWHERE = Failure(Category.HTTP, "another address says that it did not change", transient=True)


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
    # The body as it came over the wire, where that was gzip.
    packed: bytes = b""
    # SHA-256 of the content; ``identified`` gives it to pages that were fetched whole.
    content_hash: str = ""
    # The same content as at the last look: a 304, or the same bytes once more.
    not_modified: bool = False
    # A stored page that is read again; ``fetched_at`` is when it came.
    reparsed: bool = False
    proxy_id: uuid.UUID | None = None

    def content(self) -> bytes:
        """The page itself, from the store where it did not come again; may be ``PageLost``."""
        return self.body or pages.read_content(self.content_hash)

    def identified(self) -> Page:
        """With its hash, and whether that is the one of the last look."""
        if self.failure is not None or self.content_hash:
            return self
        found, known = pages.hash_of(self.body), self.claim.known
        same = known is not None and known.content_hash == found
        return replace(self, content_hash=found, not_modified=same)

    @property
    def validator(self) -> Validator:
        """For the next look; a 304 may leave out what the page said before."""
        known = self.claim.known if self.status == NOT_MODIFIED else None
        etag = self.headers.get("ETag", known.etag if known else "")
        modified = self.headers.get("Last-Modified", known.last_modified if known else "")
        answered_by = known.final_url_hash if known else _identity(self.claim, self.url)
        return Validator.of(self.content_hash, etag, modified, answered_by)


def _identity(claim: Claim, url: str) -> str:
    return claim.url_hash if url == claim.url else url_hash(normalize_url(url))


async def fetch(
    egress: Egress, claim: Claim, *, user_agent: str, proxy: ProxyAddress | None = None
) -> Page:
    fetched_at = timezone.now()
    options = claim.options
    headers = {**options.headers, "User-Agent": user_agent}
    if claim.known is not None:
        headers |= claim.known.conditions
    try:
        answer = await egress.request(
            "GET",
            claim.url,
            headers=headers,
            proxy=proxy,
            timeout_seconds=options.timeout_seconds,
            max_body_bytes=options.max_page_bytes,
            max_decoded_bytes=_most_decoded(claim, options.max_page_bytes),
            max_redirects=options.max_redirects,
            accept_types=types_of(claim.purpose),
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
        return Page(claim, fetched_at, failure, status=failed.status)
    if answer.status == NOT_MODIFIED and claim.known is not None:
        return _unchanged(claim, claim.known, fetched_at, answer)
    return Page(
        claim,
        fetched_at,
        judge(answer.status, answer.body),
        status=answer.status,
        url=answer.url,
        body=answer.body,
        elapsed_ms=answer.elapsed_ms,
        retry_after_seconds=retry_after(answer.status, answer.headers, fetched_at),
        headers=answer.headers,
        packed=answer.packed,
    )


def _unchanged(claim: Claim, known: Validator, fetched_at: dt.datetime, answer: Response) -> Page:
    """A 304 holds for the address that gave the page; a shop that redirects elsewhere by
    now (a product that is gone, to its front page) must be asked again without conditions."""
    same = _identity(claim, answer.url) == known.final_url_hash
    return Page(
        claim,
        fetched_at,
        None if same else ELSEWHERE,
        status=answer.status,
        url=answer.url,
        elapsed_ms=answer.elapsed_ms,
        headers=answer.headers,
        content_hash=known.content_hash,
        not_modified=same,
    )


def _most_decoded(claim: Claim, max_page_bytes: int) -> int:
    return max(2 * max_page_bytes, SITEMAP_BYTES if claim.purpose == SITEMAP else 0)


def types_of(purpose: str) -> tuple[str, ...]:
    return (*TYPES, *PACKED_TYPES) if purpose == SITEMAP else TYPES


def judge(status: int, body: bytes) -> Failure | None:
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
