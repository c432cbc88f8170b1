"""robots.txt per RFC 9309: asked for once a day, kept in the domain row, one per origin."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.utils import timezone
from protego import Protego

from common.errors import Refused
from common.http import Egress, FetchFailed
from common.proxying import ProxyAddress
from common.urls import origin_of
from crawling.fetching import retry_after
from crawling.models import Domain

AGE = dt.timedelta(hours=24)
# How long the last good copy stands in for one that does not answer.
STALE = dt.timedelta(days=30)
FIRST_RETRY = dt.timedelta(minutes=5)
LONGEST_RETRY = dt.timedelta(hours=6)
MAX_BYTES = 500 * 1024
TIMEOUT_SECONDS = 15
MAX_REDIRECTS = 5
# Kept as the status where a file hides behind more redirects than are followed.
TOO_MANY_REDIRECTS = 302
LONGEST_CRAWL_DELAY_SECONDS = 60.0
TOKEN = re.compile(r"[A-Za-z_-]+")


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of an origin. ``rules`` None: everything is allowed."""

    rules: Protego | None
    # Set where nothing may be asked: when the file is asked for again.
    unreachable_until: dt.datetime | None = None

    def allows(self, url: str) -> bool:
        return self.rules is None or bool(self.rules.can_fetch(url, agent()))

    @property
    def crawl_delay(self) -> float:
        delay = self.rules.crawl_delay(agent()) if self.rules else None
        return min(max(float(delay or 0), 0.0), LONGEST_CRAWL_DELAY_SECONDS)

    @property
    def sitemaps(self) -> list[str]:
        return list(self.rules.sitemaps) if self.rules else []


OPEN = Robots(None)


@dataclass(frozen=True, slots=True)
class Kept:
    """A robots.txt as the domain row keeps it."""

    origin: str
    body: str = ""
    status: int | None = None
    fetched_at: dt.datetime | None = None
    due_at: dt.datetime | None = None
    failures: int = 0

    @property
    def url(self) -> str:
        return f"{self.origin}/robots.txt"

    def is_due(self, now: dt.datetime) -> bool:
        return self.due_at is None or self.due_at <= now

    def rules(self, now: dt.datetime) -> Robots:
        if self.fetched_at is None or (self.failures and self.fetched_at <= now - STALE):
            return Robots(None, unreachable_until=self.due_at or now + FIRST_RETRY)
        found = self.status is not None and 200 <= self.status < 300
        return Robots(Protego.parse(self.body) if found else None)


@dataclass(frozen=True, slots=True)
class Asked:
    """How one request for a robots.txt went; ``status`` None: no answer."""

    status: int | None = None
    text: str = ""
    bytes: int | None = None
    response_ms: int | None = None
    retry_after_seconds: float | None = None
    error_category: str = ""

    via_proxy: bool = False

    @property
    def reachable(self) -> bool:
        return self.status is not None and self.status != 429 and self.status < 500


def agent() -> str:
    """The product token that rules are matched with, whatever name a domain is shown."""
    found = TOKEN.match(settings.CRAWL_USER_AGENT)
    return found[0] if found else "ObsrvBot"


def kept_of(domain: Domain, origin: str) -> Kept:
    if origin == origin_of(domain.base_url):
        return Kept(
            origin,
            domain.robots_body,
            domain.robots_status,
            domain.robots_fetched_at,
            domain.robots_due_at,
            domain.robots_failures,
        )
    other = domain.robots_other
    if other.get("origin") != origin:
        return Kept(origin)
    times = {name: _moment(other[name]) for name in ("fetched_at", "due_at")}
    return Kept(**(other | times))


def columns_of(domain: Domain, kept: Kept) -> dict[str, Any]:
    """What of the domain row changes when this file is kept."""
    if kept.origin == origin_of(domain.base_url):
        return {
            "robots_url": kept.url,
            "robots_body": kept.body,
            "robots_status": kept.status,
            "robots_fetched_at": kept.fetched_at,
            "robots_due_at": kept.due_at,
            "robots_failures": kept.failures,
            "robots_crawl_delay": kept.rules(timezone.now()).crawl_delay or None,
        }
    return {
        "robots_other": {
            "origin": kept.origin,
            "body": kept.body,
            "status": kept.status,
            "fetched_at": kept.fetched_at and kept.fetched_at.isoformat(),
            "due_at": kept.due_at and kept.due_at.isoformat(),
            "failures": kept.failures,
        }
    }


async def ask(
    egress: Egress, url: str, *, user_agent: str, proxy: ProxyAddress | None = None
) -> Asked:
    try:
        answer = await egress.request(
            "GET",
            url,
            headers={"User-Agent": user_agent},
            proxy=proxy,
            timeout_seconds=TIMEOUT_SECONDS,
            max_redirects=MAX_REDIRECTS,
            # One byte more, by which it is known that there is more.
            max_decoded_bytes=MAX_BYTES + 1,
            cuts=True,
        )
    except Refused:
        return Asked(error_category="blocked")
    except FetchFailed as failed:
        if failed.category == "http":
            return Asked(status=TOO_MANY_REDIRECTS)
        return Asked(error_category=failed.category, via_proxy=failed.via_proxy)
    return Asked(
        answer.status,
        _text(answer.body) if 200 <= answer.status < 300 else "",
        len(answer.body),
        answer.elapsed_ms,
        retry_after(answer.status, answer.headers, timezone.now()),
        "" if answer.status < 400 else "http",
    )


def keep(kept: Kept, asked: Asked) -> Kept:
    """The file after a request for it: the new one, or the old one and when to try again."""
    now = timezone.now()
    if asked.reachable:
        return Kept(kept.origin, asked.text, asked.status, now, now + AGE)
    wait = min(FIRST_RETRY * 2 ** min(kept.failures, 10), LONGEST_RETRY)
    if asked.retry_after_seconds:
        wait = max(wait, dt.timedelta(seconds=asked.retry_after_seconds))
    return replace(kept, due_at=now + wait, failures=kept.failures + 1)


def sitemaps_of(domain: Domain) -> list[str]:
    """The ``Sitemap:`` lines of the copy that is kept."""
    return list(Protego.parse(domain.robots_body).sitemaps)


def _text(body: bytes) -> str:
    if len(body) > MAX_BYTES:
        # Half a rule would be another rule.
        body = body[:MAX_BYTES].rpartition(b"\n")[0]
    return body.decode("utf-8", "replace").replace("\x00", "")


def _moment(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
