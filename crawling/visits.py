"""One domain during one slice: its tasks in order, at its own pace, until time is up."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.http import Egress
from common.urls import origin_of
from crawling import jobs, ledger, proxies, robots
from crawling.breaker import Breaker, tell_opened
from crawling.fetching import BUSY, Failure, Page, fetch
from crawling.leases import MAX_CLAIMS, Claim, begin, release_domain, return_tasks
from crawling.ledger import Answered, Ledger
from crawling.models import CrawlTask, Domain
from crawling.pacing import Pace, Turn
from crawling.proxies import Choice, Chooser
from crawling.robots import Asked, Robots
from crawling.windows import quiet_until

# Claimed ahead at most; what is not reached goes back.
CLAIM_AHEAD = 200
# How often a page that has its last chance is looked after.
LAST_CHANCE_LOOK_SECONDS = 0.05
# A visit that ends in an unforeseen error must not begin again at once, for ever.
AFTER_TROUBLE = dt.timedelta(seconds=60)
# An operator may bring a proxy back at any time.
WITHOUT_PROXY = dt.timedelta(seconds=60)
ROBOTS_SILENT = "Waiting: robots.txt of the shop does not answer; it is asked again and again."
ROBOTS_FORBID = Failure(
    CrawlTask.Category.ROBOTS, "robots.txt of the shop forbids this page", transient=False
)
# Answers that say nothing about how the shop is doing.
NEUTRAL = (404, 410)


class Pulse:
    """When the slice last heard that its leases hold. A process that was frozen past them
    must not ask anybody before it has looked again: the domain may be another's."""

    def __init__(self) -> None:
        self._lease_seconds = float(settings.CRAWL_LEASE_SECONDS)
        self._at = time.monotonic()

    def beat(self, asked_at: float) -> None:
        """From when the question was asked: the answer may have been read much later."""
        self._at = asked_at

    @property
    def lost(self) -> bool:
        return time.monotonic() - self._at > self._lease_seconds


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
    pulse: Pulse = field(default_factory=Pulse)
    ledger: Ledger = field(default_factory=Ledger)
    # Held by the one page that has its last chance.
    last_chance: asyncio.Lock = field(default_factory=asyncio.Lock)


class Visit:
    def __init__(self, domain: Domain, slicing: Slicing) -> None:
        self.domain = domain
        self.slicing = slicing
        self.breaker = Breaker.of(domain)
        self.pace = Pace.of(domain)
        self.proxies = Chooser(domain.proxy_rotation, [])
        self.robots: dict[str, Robots] = {}
        self.waiting: deque[Claim] = deque()
        self.deferred: list[tuple[Claim, dt.datetime]] = []
        # Nothing more to claim; and: nothing more may be asked.
        self.exhausted = self.over = False
        self.rest_until: dt.datetime | None = None
        self.successes = self.failures = 0
        self._claiming = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        try:
            await self._crawl()
        except Exception:
            self._rest(timezone.now() + AFTER_TROUBLE)
            raise
        finally:
            self.slicing.forget([*self.waiting, *(claim for claim, _ in self.deferred)])
            await self.slicing.in_database(self._leave)

    async def _crawl(self) -> None:
        if self._is_quiet():
            return
        self.proxies = await self.slicing.in_database(proxies.load_chooser, self.domain)
        if self._lacks_proxy():
            return
        workers = self.domain.max_concurrent_requests
        if self.breaker.probing:
            workers = 1
            await self.slicing.in_database(self._keep, {"breaker_state": self.breaker.state})
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (claim := await self._next()) is not None:
            try:
                await self._handle(claim)
            except BaseException:
                self.waiting.append(claim)
                raise

    async def _handle(self, claim: Claim) -> None:
        asks = claim.options.respect_robots
        rules = await self._rules(origin_of(claim.url)) if asks else robots.OPEN
        if rules is None:
            self._stop_at(claim)
        elif rules.unreachable_until is not None:
            await self.slicing.in_database(jobs.say_waiting, self.domain.id, ROBOTS_SILENT)
            self._defer(claim, rules.unreachable_until)
        elif not rules.allows(claim.url):
            await self.slicing.emit(Page(claim, timezone.now(), ROBOTS_FORBID))
        elif claim.deaths < MAX_CLAIMS - 1:
            await self._ask(claim)
        else:
            await self._ask_alone(claim)

    async def _ask_alone(self, claim: Claim) -> None:
        """Alone until it is written: if the worker dies of it, nothing else is blamed."""
        async with self.slicing.last_chance:
            await self._ask(claim)
            while self.slicing.holds(claim) and not self.over and claim not in self.waiting:
                await asyncio.sleep(LAST_CHANCE_LOOK_SECONDS)

    async def _ask(self, claim: Claim) -> None:
        await self._keep_long_gap()
        turn = None if self._must_stop() else await self.pace.turn(self.slicing.deadline)
        if turn is None or self._must_stop():
            self._stop_at(claim)
            return
        if not self.slicing.holds(claim):
            return
        choice = self._choose()
        if choice is None and self.proxies.required:
            self._stop_at(claim)
            return
        if claim.deaths:
            await self.slicing.in_database(begin, claim)
        page = await self._fetch(claim, choice)
        if page is None:
            return
        self._note(page, turn)
        if page.failure and page.failure.via_proxy:
            # Not a try of the page: it goes another way, or waits for one.
            self.waiting.appendleft(claim)
            return
        self._learn(page)
        await self._write_down()
        await self.slicing.emit(page)

    async def _fetch(self, claim: Claim, choice: Choice | None) -> Page | None:
        way = choice.address if choice else None
        fetching = fetch(self.slicing.egress, claim, user_agent=self._user_agent, proxy=way)
        page = await self.slicing.fly(claim, fetching)
        if choice is None:
            return page
        if page is None:
            self.proxies.release(choice)
            return None
        failed = page.failure is not None and page.failure.via_proxy
        self._judge_proxy(choice, ok=not failed, elapsed_ms=page.elapsed_ms)
        return replace(page, proxy_id=choice.proxy_id)

    def _choose(self) -> Choice | None:
        """The proxy of the next request; None for a domain that has none, or none to use."""
        choice = self.proxies.choose(timezone.now()) if self.proxies.required else None
        if choice is None:
            self._lacks_proxy()
        return choice

    def _lacks_proxy(self) -> bool:
        now = timezone.now()
        if not self.proxies.required or (usable_at := self.proxies.next_usable_at(now)) <= now:
            return False
        self._rest(min(usable_at, now + WITHOUT_PROXY))
        return True

    def _judge_proxy(self, choice: Choice, *, ok: bool, elapsed_ms: int | None) -> None:
        self.proxies.report(choice, ok=ok, elapsed_ms=elapsed_ms, now=timezone.now())

    def _note(self, page: Page, turn: Turn) -> None:
        answered = Answered(
            page.status,
            len(page.body) if page.status is not None else None,
            page.elapsed_ms,
            page.failure.category if page.failure else "",
        )
        claim = page.claim
        self.slicing.ledger.note(
            self.domain, claim.url, turn, answered, task_id=claim.id, proxy_id=page.proxy_id
        )

    async def _rules(self, origin: str) -> Robots | None:
        """What the origin allows; None when there is no time left to ask."""
        if origin not in self.robots:
            async with self._reading:
                if origin not in self.robots:
                    found = await self._read_robots(origin)
                    if found is None:
                        return None
                    self.pace.hear_robots(found.crawl_delay)
                    self.robots[origin] = found
        return self.robots[origin]

    async def _read_robots(self, origin: str) -> Robots | None:
        if not self.domain.respect_robots:
            return robots.OPEN
        kept = robots.kept_of(self.domain, origin)
        if not kept.is_due(timezone.now()):
            return kept.rules(timezone.now())
        turn = None if self._must_stop() else await self.pace.turn(self.slicing.deadline)
        if turn is None or self._must_stop():
            return None
        choice = self._choose()
        if choice is None and self.proxies.required:
            return None
        asked = await self._ask_robots(kept.url, turn, choice)
        if asked.via_proxy:
            return await self._read_robots(origin)
        kept = robots.keep(kept, asked)
        await self.slicing.in_database(self._keep, robots.columns_of(self.domain, kept))
        return kept.rules(timezone.now())

    async def _ask_robots(self, url: str, turn: Turn, choice: Choice | None) -> Asked:
        way = choice.address if choice else None
        asked = await robots.ask(self.slicing.egress, url, user_agent=self._user_agent, proxy=way)
        if choice:
            self._judge_proxy(choice, ok=not asked.via_proxy, elapsed_ms=asked.response_ms)
        answered = Answered(asked.status, asked.bytes, asked.response_ms, asked.error_category)
        proxy_id = choice.proxy_id if choice else None
        self.slicing.ledger.note(self.domain, url, turn, answered, proxy_id=proxy_id)
        return asked

    def _defer(self, claim: Claim, until: dt.datetime) -> None:
        """Nothing of this origin before then; the host's other scheme may still be served."""
        origin = origin_of(claim.url)
        mine = [claim, *(one for one in self.waiting if origin_of(one.url) == origin)]
        self.waiting = deque(one for one in self.waiting if origin_of(one.url) != origin)
        if self.waiting or len(self.robots) > 1:
            self.deferred.extend((one, until) for one in mine)
        else:
            self.waiting.extend(mine)
            self._rest(until)

    def _stop_at(self, claim: Claim) -> None:
        self.over = True
        self.waiting.append(claim)

    def _must_stop(self) -> bool:
        return self.over or self.slicing.pulse.lost or self._is_quiet()

    def _is_quiet(self) -> bool:
        until = quiet_until(self.domain, timezone.now())
        if until is not None:
            self._rest(until)
        return until is not None

    def _rest(self, until: dt.datetime) -> None:
        self.over = True
        self.rest_until = max(self.rest_until or until, until)

    async def _next(self) -> Claim | None:
        async with self._claiming:
            while not self._finished():
                if not self.waiting:
                    claims = await self.slicing.claim(self.domain.id, self._capacity())
                    self.waiting.extend(claims)
                    self.exhausted = not claims
                elif self.slicing.holds(claim := self.waiting.popleft()):
                    return claim
        return None

    def _finished(self) -> bool:
        ended = self.exhausted and not self.waiting
        return ended or self.over or time.monotonic() >= self.slicing.deadline

    def _capacity(self) -> int:
        if self.breaker.probing:
            return 1
        if not self.pace.gap:
            return CLAIM_AHEAD
        left = max(0.0, self.slicing.deadline - time.monotonic())
        return min(CLAIM_AHEAD, math.ceil(left / self.pace.gap) + 1)

    def _learn(self, page: Page) -> None:
        if page.failure and page.failure.counts_against_host:
            self._learn_failure()
        elif page.status in BUSY:
            self.failures += 1
            self.pace.learn_error()
            self.pace.back_off(page.retry_after_seconds)
        elif page.status is not None:
            self.successes += 1
            self.breaker.succeeded()
            self._learn_answer(page)

    def _learn_failure(self) -> None:
        self.failures += 1
        self.pace.learn_error()
        self.breaker.failed()
        if self.breaker.is_open:
            self.pace.hold(self.breaker.wait_seconds)
            self.over = True

    def _learn_answer(self, page: Page) -> None:
        status = page.status or 0
        if status < 400:
            self.pace.learn_good(page.elapsed_ms)
        elif status not in NEUTRAL:
            self.pace.learn_error()

    async def _write_down(self) -> None:
        if self.slicing.ledger.is_due:
            await self.slicing.in_database(ledger.write, self.slicing.ledger.take())
        if self.proxies.is_due:
            await self.slicing.in_database(self.proxies.save)
        # A wait longer than the lease must outlive this worker.
        if self.pace.wait_seconds > settings.CRAWL_LEASE_SECONDS / 2:
            await self._keep_wait(self.pace.next_allowed_at)

    async def _keep_long_gap(self) -> None:
        """The next holder keeps a long gap also when this one is killed right after asking."""
        if self.pace.gap > settings.CRAWL_LEASE_SECONDS / 2:
            wait = dt.timedelta(seconds=self.pace.wait_seconds + self.pace.gap)
            await self._keep_wait(timezone.now() + wait)

    async def _keep_wait(self, until: dt.datetime | None) -> None:
        columns = self.pace.columns() | {"next_allowed_at": until}
        await self.slicing.in_database(self._keep, columns)

    @property
    def _user_agent(self) -> str:
        return self.domain.user_agent or settings.CRAWL_USER_AGENT

    def _keep(self, columns: dict[str, Any]) -> None:
        """Unless the lease was lost: then the domain is another worker's to describe."""
        mine = Domain.objects.filter(id=self.domain.id, leased_by=self.slicing.worker)
        mine.update(**columns)

    def _leave(self) -> None:
        return_tasks(self.waiting)
        for claim, until in self.deferred:
            return_tasks([claim], scheduled_at=until)
        ledger.write(self.slicing.ledger.take())
        self.proxies.save()
        # Where nothing was learnt, an operator may have reset it meanwhile.
        breaker = self.breaker.columns() if self.breaker.learnt else {}
        with transaction.atomic():
            is_mine = release_domain(
                self.slicing.worker,
                self.domain.id,
                self._next_allowed_at(),
                success_count=F("success_count") + self.successes,
                failure_count=F("failure_count") + self.failures,
                **self.pace.columns(),
                **breaker,
            )
            if is_mine and breaker and self.breaker.opened_first:
                tell_opened(self.domain.host, self.breaker)

    def _next_allowed_at(self) -> dt.datetime | None:
        waits = [wait for wait in (self.pace.next_allowed_at, self.rest_until) if wait]
        return max(waits, default=None)
