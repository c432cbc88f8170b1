"""May we go, and when? Decided by the one worker that holds the domain."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from protego import Protego

from common.errors import Refused
from common.http import Egress, FetchFailed
from crawling.models import Domain

AGENT = "ObsrvBot"
ROBOTS_AGE = dt.timedelta(hours=24)
# How long the last good copy stands in for a robots.txt that does not answer (RFC 9309).
ROBOTS_STALE = dt.timedelta(days=30)
ROBOTS_BYTES = 500 * 1024
ROBOTS_RETRY = dt.timedelta(minutes=5)
LONGEST_CRAWL_DELAY_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of a host. ``rules`` None: everything is allowed."""

    rules: Protego | None
    unreachable: bool = False

    def allows(self, url: str) -> bool:
        return self.rules is None or bool(self.rules.can_fetch(url, AGENT))

    @property
    def crawl_delay(self) -> float:
        delay = self.rules.crawl_delay(AGENT) if self.rules else None
        return min(float(delay or 0), LONGEST_CRAWL_DELAY_SECONDS)


async def read_robots(domain: Domain, egress: Egress) -> tuple[Robots, dict[str, Any]]:
    """The rules, from the domain row or the host; with the columns to keep, if any."""
    if not domain.respect_robots:
        return Robots(None), {}
    now = timezone.now()
    if domain.robots_fetched_at and domain.robots_fetched_at > now - ROBOTS_AGE:
        return _parsed(domain.robots_status, domain.robots_body), {}
    url = f"{domain.base_url.rstrip('/')}/robots.txt"
    status, body = await _fetch_robots(egress, url)
    if status is None:
        usable = domain.robots_fetched_at and domain.robots_fetched_at > now - ROBOTS_STALE
        if usable:
            return _parsed(domain.robots_status, domain.robots_body), {}
        return Robots(None, unreachable=True), {}
    robots = _parsed(status, body)
    return robots, {
        "robots_url": url,
        "robots_body": body,
        "robots_status": status,
        "robots_fetched_at": now,
        "robots_crawl_delay": robots.crawl_delay or None,
    }


async def _fetch_robots(egress: Egress, url: str) -> tuple[int | None, str]:
    """Status and text; the status is None when RFC 9309 calls the file unreachable."""
    try:
        answer = await egress.request("GET", url, timeout_seconds=15)
    except (FetchFailed, Refused):
        return None, ""
    if answer.status == 429 or answer.status >= 500:
        return None, ""
    text = answer.body[:ROBOTS_BYTES].decode("utf-8", "replace").replace("\x00", "")
    return answer.status, text if answer.status < 300 else ""


def _parsed(status: int | None, body: str) -> Robots:
    return Robots(Protego.parse(body) if status is not None and status < 300 else None)


class Pace:
    """The gap between two requests to one host, kept by everyone who asks for a turn."""

    def __init__(self, domain: Domain, robots: Robots, *, just_asked: bool = False) -> None:
        rate = 1 / domain.rate_limit_rps if domain.rate_limit_rps else 0.0
        self.gap = max(domain.crawl_delay_seconds, robots.crawl_delay, rate)
        self._next = time.monotonic() + (self.gap if just_asked else 0.0)
        self._backoff = 0.0

    async def turn(self, deadline: float) -> bool:
        """Wait for the next slot, one by one and without bursts; False when it lies
        past the deadline (of the monotonic clock)."""
        now = time.monotonic()
        slot = max(self._next, now)
        if slot > deadline:
            return False
        self._next = slot + self.gap
        if slot > now:
            await asyncio.sleep(slot - now)
        return True

    def relax(self) -> None:
        self._backoff = 0.0

    def back_off(self, seconds: float | None) -> None:
        """The host asked for quiet, or is in trouble: double up to an hour."""
        self._backoff = min(max(self._backoff * 2, 60.0), LONGEST_BACKOFF_SECONDS)
        self._next = max(self._next, time.monotonic() + (seconds or self._backoff))

    @property
    def next_allowed_at(self) -> dt.datetime | None:
        """When the next holder may ask, for the domain row."""
        wait = self._next - time.monotonic()
        return timezone.now() + dt.timedelta(seconds=wait) if wait > 0 else None


@dataclass(slots=True)
class Breaker:
    """Opens after a row of transport failures; one probe closes or re-opens it."""

    threshold: int
    timeout_s: int
    state: str
    failures: int
    opened_at: dt.datetime | None

    @classmethod
    def of(cls, domain: Domain) -> Breaker:
        state = domain.breaker_state
        if state == Domain.Breaker.OPEN:
            state = Domain.Breaker.HALF_OPEN
        return cls(
            domain.breaker_threshold,
            domain.breaker_timeout_s,
            state,
            domain.breaker_failures,
            domain.breaker_opened_at,
        )

    @property
    def is_open(self) -> bool:
        return self.state == Domain.Breaker.OPEN

    @property
    def probing(self) -> bool:
        return self.state == Domain.Breaker.HALF_OPEN

    def succeeded(self) -> None:
        self.state, self.failures, self.opened_at = Domain.Breaker.CLOSED, 0, None

    def failed(self) -> None:
        self.failures += 1
        if self.probing or self.failures >= self.threshold:
            self.state, self.opened_at = Domain.Breaker.OPEN, timezone.now()

    @property
    def wait_seconds(self) -> float:
        doublings = max(0, self.failures - self.threshold)
        return min(self.timeout_s * 2.0**doublings, LONGEST_BACKOFF_SECONDS)

    def columns(self) -> Mapping[str, Any]:
        return {
            "breaker_state": self.state,
            "breaker_failures": self.failures,
            "breaker_opened_at": self.opened_at,
        }
