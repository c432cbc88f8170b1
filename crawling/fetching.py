"""One page, fetched through the guarded door, as a fact: an answer or a failure."""

from __future__ import annotations

import datetime as dt
import email.utils
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.utils import timezone

from common.errors import Refused
from common.http import Egress, FetchFailed, Response
from common.urls import normalize_url, url_hash
from crawling import pages
from crawling.leases import Claim
from crawling.models import CrawlTask
from crawling.validators import ETAG_CHARS, LAST_MODIFIED_CHARS, Validator

Category = CrawlTask.Category
TYPES = ("text/", "application/xhtml", "application/xml", "application/json")
# Answers that say "not now": the host is left alone for a while.
BUSY = (429, 503)
NOT_MODIFIED = 304
MAX_RETRY_AFTER_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Failure:
    category: str
    message: str
    transient: bool
    # Transport failures open the breaker; answers such as 404 do not.
    counts_against_host: bool = False


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
    # The same content as at the last look: a 304, or the same bytes once more.
    not_modified: bool = False
    # SHA-256 of the content; ``identified`` gives it to pages that were fetched whole.
    stored_hash: str = ""
    # A stored page that is read again; ``fetched_at`` is when it came.
    reparsed: bool = False
    proxy_id: uuid.UUID | None = None
    packed: bytes = b""

    def content(self) -> bytes:
        """The page itself, from the store where it did not come again; may be ``PageLost``."""
        return self.body or pages.read_content(self.stored_hash)

    def identified(self) -> Page:
        """With its hash, and whether that is the one of the last look."""
        if self.failure is not None or self.stored_hash:
            return self
        found, known = pages.hash_of(self.body), self.claim.known
        same = known is not None and known.content_hash == found
        return replace(self, stored_hash=found, not_modified=same)

    @property
    def validator(self) -> Validator:
        """For the next look; a 304 may leave out what the page said before."""
        known = self.claim.known if self.status == NOT_MODIFIED else None
        etag = self.headers.get("ETag", known.etag if known else "")
        modified = self.headers.get("Last-Modified", known.last_modified if known else "")
        return Validator(
            content_hash=self.stored_hash,
            etag=etag if len(etag) <= ETAG_CHARS else "",
            last_modified=modified if len(modified) <= LAST_MODIFIED_CHARS else "",
            final_url_hash=known.final_url_hash if known else _identity(self.claim, self.url),
        )


def _identity(claim: Claim, url: str) -> str:
    return claim.url_hash if url == claim.url else url_hash(normalize_url(url))


async def fetch(
    egress: Egress, claim: Claim, *, user_agent: str, proxy_id: uuid.UUID | None = None
) -> Page:
    fetched_at = timezone.now()
    headers = {"User-Agent": user_agent} | (claim.known.conditions if claim.known else {})
    try:
        answer = await egress.request("GET", claim.url, headers=headers)
    except Refused as refused:
        return Page(claim, fetched_at, Failure(Category.BLOCKED, refused.detail, transient=False))
    except FetchFailed as failed:
        failure = Failure(failed.category, str(failed), failed.transient, failed.transient)
        return Page(claim, fetched_at, failure)
    unchanged = answer.status == NOT_MODIFIED and claim.known is not None
    return Page(
        claim,
        fetched_at,
        _doubt(claim, answer) if unchanged else judge(answer.status, answer.headers, answer.body),
        status=answer.status,
        url=answer.url,
        body=answer.body,
        elapsed_ms=answer.elapsed_ms,
        retry_after_seconds=retry_after(answer.status, answer.headers, fetched_at),
        headers=answer.headers,
        not_modified=unchanged,
        stored_hash=claim.known.content_hash if unchanged and claim.known else "",
        proxy_id=proxy_id,
        packed=answer.packed,
    )


def _doubt(claim: Claim, answer: Response) -> Failure | None:
    """A 304 holds for the address that gave the page; a shop that redirects elsewhere by
    now (a product that is gone, to its front page) must be asked again without conditions."""
    if claim.known is None or _identity(claim, answer.url) == claim.known.final_url_hash:
        return None
    return Failure(Category.HTTP, "another address says that it did not change", transient=True)


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
    """Seconds the host asked to be left alone, from either form of the header."""
    if status not in BUSY:
        return None
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(min(int(text[:9]), MAX_RETRY_AFTER_SECONDS))
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return min(max((moment - now).total_seconds(), 0.0), float(MAX_RETRY_AFTER_SECONDS))
