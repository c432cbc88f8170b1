"""One domain during one slice: its tasks in order, at its own pace, until time is up."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from common.http import Egress
from crawling import jobs
from crawling.fetching import BUSY, Failure, Page, fetch
from crawling.leases import Claim, release_domain, return_tasks
from crawling.models import CrawlTask, Domain
from crawling.politeness import ROBOTS_RETRY, Breaker, Pace, Robots, read_robots

# Claimed ahead at most; what is not reached goes back.
CLAIM_AHEAD = 200
EWMA_WEIGHT = 0.2
# A visit that ends in an unforeseen error must not begin again at once, for ever.
AFTER_TROUBLE = dt.timedelta(seconds=60)
ROBOTS_SILENT = "Waiting: robots.txt of the shop does not answer; it is asked again and again."
ROBOTS_FORBID = Failure(
    CrawlTask.Category.ROBOTS, "robots.txt of the shop forbids this page", transient=False
)


@dataclass(frozen=True)
class Slicing:
    """What a visit needs of the slice it runs in."""

    worker: str
    egress: Egress
    deadline: float
    claim: Callable[[uuid.UUID, int], Awaitable[list[Claim]]]
    # A claim counts until somebody pauses or cancels its task, or takes it over.
    holds: Callable[[Claim], bool]
    fly: Callable[[Claim, Coroutine[Any, Any, Page]], Awaitable[Page | None]]
    emit: Callable[[Page], Awaitable[None]]
    forget: Callable[[Iterable[Claim]], None]
    in_database: Callable[..., Awaitable[Any]]


class Visit:
    def __init__(self, domain: Domain, slicing: Slicing) -> None:
        self.domain = domain
        self.slicing = slicing
        self.breaker = Breaker.of(domain)
        self.waiting: deque[Claim] = deque()
        self.over = False
        self.successes = self.failures = 0
        self.response_ms: float | None = domain.response_ms_ewma
        self._claiming = asyncio.Lock()
        self.robots = Robots(None)
        self.pace = Pace(domain, self.robots)

    async def run(self) -> None:
        next_allowed_at: dt.datetime | None = timezone.now() + AFTER_TROUBLE
        try:
            if await self._may_enter():
                workers = 1 if self.breaker.probing else self.domain.max_concurrent_requests
                async with asyncio.TaskGroup() as group:
                    for _ in range(workers):
                        group.create_task(self._work())
                next_allowed_at = self.pace.next_allowed_at
            else:
                next_allowed_at = timezone.now() + ROBOTS_RETRY
        finally:
            self.slicing.forget(self.waiting)
            await self.slicing.in_database(self._leave, next_allowed_at)

    async def _may_enter(self) -> bool:
        self.robots, columns = await read_robots(self.domain, self.slicing.egress)
        if columns:
            await self.slicing.in_database(self._keep, columns)
        if self.robots.unreachable:
            self.failures += 1
            await self.slicing.in_database(jobs.say_waiting, self.domain.id, ROBOTS_SILENT)
        self.pace = Pace(self.domain, self.robots, just_asked=bool(columns))
        return not self.robots.unreachable

    async def _work(self) -> None:
        while (claim := await self._next()) is not None:
            if not self.robots.allows(claim.url):
                await self.slicing.emit(Page(claim, timezone.now(), ROBOTS_FORBID))
                continue
            if self.over or not await self.pace.turn(self.slicing.deadline):
                self.over = True
                self.waiting.append(claim)
                return
            if not self.slicing.holds(claim):
                continue
            agent = self.domain.user_agent or settings.CRAWL_USER_AGENT
            fetching = fetch(self.slicing.egress, claim, user_agent=agent)
            if page := await self.slicing.fly(claim, fetching):
                self._learn(page)
                await self.slicing.emit(page)

    async def _next(self) -> Claim | None:
        async with self._claiming:
            while not self._finished():
                if not self.waiting:
                    claims = await self.slicing.claim(self.domain.id, self._capacity())
                    self.waiting.extend(claims)
                    self.over = self.over or not claims
                elif self.slicing.holds(claim := self.waiting.popleft()):
                    return claim
        return None

    def _finished(self) -> bool:
        return (self.over and not self.waiting) or time.monotonic() >= self.slicing.deadline

    def _capacity(self) -> int:
        if self.breaker.probing:
            return 1
        if not self.pace.gap:
            return CLAIM_AHEAD
        left = max(0.0, self.slicing.deadline - time.monotonic())
        return min(CLAIM_AHEAD, math.ceil(left / self.pace.gap) + 1)

    def _learn(self, page: Page) -> None:
        if page.failure and page.failure.counts_against_host:
            self.failures += 1
            self.breaker.failed()
            if self.breaker.is_open:
                self.pace.back_off(self.breaker.wait_seconds)
                self.over = True
            return
        if page.status in BUSY:
            self.failures += 1
            self.pace.back_off(page.retry_after_seconds)
            return
        self.successes += 1
        self.breaker.succeeded()
        self.pace.relax()
        if page.elapsed_ms is not None:
            before = self.response_ms if self.response_ms is not None else page.elapsed_ms
            self.response_ms = before + EWMA_WEIGHT * (page.elapsed_ms - before)

    def _keep(self, columns: dict[str, Any]) -> None:
        """Unless the lease was lost: then the domain is another worker's to describe."""
        mine = Domain.objects.filter(id=self.domain.id, leased_by=self.slicing.worker)
        mine.update(**columns)

    def _leave(self, next_allowed_at: dt.datetime | None) -> None:
        return_tasks(self.waiting)
        self._keep(
            {
                "success_count": F("success_count") + self.successes,
                "failure_count": F("failure_count") + self.failures,
                "response_ms_ewma": self.response_ms,
                **self.breaker.columns(),
            }
        )
        release_domain(self.slicing.worker, self.domain.id, next_allowed_at)
