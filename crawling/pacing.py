"""The pace of a host: who asks next, when, and by which rule. Kept by the one worker that
holds the domain, and handed on in the domain row."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from crawling.models import Domain

LONGEST_CRAWL_DELAY_SECONDS = 60.0
FIRST_BACKOFF_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 3600.0
EWMA_WEIGHT = 0.2
# Slow: twice the usual time, and by more than the jitter of a healthy shop.
SLOW_FACTOR = 2.0
SLOW_MARGIN_MS = 250.0
FIRST_THROTTLE_SECONDS = 0.5
LONGEST_THROTTLE_SECONDS = 60.0
THROTTLE_DECAY = 0.7
THROTTLE_FLOOR_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Turn:
    """One request's place in the row, as the ledger tells it."""

    started_at: dt.datetime
    gap_seconds: float | None
    wanted_gap_seconds: float
    rule: str


class Pace:
    def __init__(
        self,
        *,
        delay: float = 0.0,
        rate: float | None = None,
        crawl_delay: float = 0.0,
        throttle: float = 0.0,
        backoff: float = 0.0,
        response_ms: float | None = None,
    ) -> None:
        self._gaps = {"domain": delay, "rate": 1 / rate if rate else 0.0, "crawl-delay": 0.0}
        self.throttle = throttle
        self.backoff = backoff
        self.response_ms = response_ms
        self.last_request_at: dt.datetime | None = None
        self._last: float | None = None
        self._quiet_until = 0.0
        self._turns = asyncio.Lock()
        self.hear_robots(crawl_delay)

    @classmethod
    def of(cls, domain: Domain) -> Pace:
        pace = cls(
            delay=domain.crawl_delay_seconds,
            rate=domain.rate_limit_rps,
            crawl_delay=(domain.robots_crawl_delay or 0.0) if domain.respect_robots else 0.0,
            throttle=domain.throttle_seconds,
            backoff=domain.backoff_seconds,
            response_ms=domain.response_ms_ewma,
        )
        if domain.last_request_at:
            pace._last = _monotonic(domain.last_request_at)
        if domain.backoff_seconds and domain.next_allowed_at:
            pace._quiet_until = _monotonic(domain.next_allowed_at)
        return pace

    @property
    def gap(self) -> float:
        return self._base + self.throttle

    @property
    def next_allowed_at(self) -> dt.datetime | None:
        """When the next holder may ask, for the domain row."""
        wait = self._due() - time.monotonic()
        return timezone.now() + dt.timedelta(seconds=wait) if wait > 0 else None

    @property
    def wait_seconds(self) -> float:
        return max(0.0, self._due() - time.monotonic())

    def hear_robots(self, crawl_delay: float) -> None:
        """A robots.txt was read: the longest of its delays counts."""
        wanted = max(self._gaps["crawl-delay"], crawl_delay)
        self._gaps["crawl-delay"] = min(wanted, LONGEST_CRAWL_DELAY_SECONDS)
        self._rule, self._base = max(self._gaps.items(), key=lambda rule: rule[1])

    async def turn(self, deadline: float) -> Turn | None:
        """Wait for the next slot, one by one and without bursts; None when it lies past
        the deadline (of the monotonic clock). Counted from the real start of the request
        before, so that a late one never shortens the next gap."""
        async with self._turns:
            while True:
                now = time.monotonic()
                due = max(self._due(), now)
                if due > deadline:
                    return None
                if due <= now:
                    return self._begin(now)
                await asyncio.sleep(due - now)

    def learn_good(self, elapsed_ms: float | None) -> None:
        """A good answer ends the back-off; one that came slowly is no reason to hurry."""
        # One that was on its way when the host asked for quiet ends nothing.
        if self._quiet_until <= time.monotonic():
            self.backoff = 0.0
        if elapsed_ms is None:
            return
        usual = self.response_ms if self.response_ms is not None else elapsed_ms
        if elapsed_ms > max(usual * SLOW_FACTOR, usual + SLOW_MARGIN_MS):
            self._throttle_to((elapsed_ms - usual) / 1000)
        else:
            eased = self.throttle * THROTTLE_DECAY
            self.throttle = eased if eased >= THROTTLE_FLOOR_SECONDS else 0.0
        self.response_ms = usual + EWMA_WEIGHT * (elapsed_ms - usual)

    def learn_error(self) -> None:
        self._throttle_to(FIRST_THROTTLE_SECONDS)

    def back_off(self, asked_seconds: float | None) -> None:
        """The host asked for quiet: as long as it says, or doubling up to an hour."""
        # Answers that were on their way together are one request for quiet.
        if self._quiet_until <= time.monotonic():
            self.backoff = min(
                max(self.backoff * 2, FIRST_BACKOFF_SECONDS), LONGEST_BACKOFF_SECONDS
            )
        self.hold(asked_seconds or self.backoff)

    def hold(self, seconds: float) -> None:
        self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)

    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "throttle_seconds": self.throttle,
            "backoff_seconds": self.backoff,
            "response_ms_ewma": self.response_ms,
        }
        if self.last_request_at:
            columns["last_request_at"] = self.last_request_at
        return columns

    def _due(self) -> float:
        return max(self._quiet_until, self._last + self.gap if self._last is not None else 0.0)

    def _begin(self, now: float) -> Turn:
        before, self._last = self._last, now
        self.last_request_at = timezone.now()
        if before is None:
            return Turn(self.last_request_at, None, 0.0, "none")
        wanted, rule = self.gap, "throttle" if self.throttle else self._rule
        if self._quiet_until - before > wanted:
            wanted, rule = self._quiet_until - before, "retry-after"
        return Turn(self.last_request_at, now - before, wanted, rule if wanted else "none")

    def _throttle_to(self, seconds: float) -> None:
        wanted = max(self.throttle * 2, seconds, FIRST_THROTTLE_SECONDS)
        self.throttle = min(wanted, LONGEST_THROTTLE_SECONDS)


def _monotonic(moment: dt.datetime) -> float:
    """A time of the wall clock on this process's own."""
    return time.monotonic() + (moment - timezone.now()).total_seconds()
