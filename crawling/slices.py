"""A slice: a bounded time in which one process crawls many domains at once.

All of it runs in one event loop; the database is touched only from one thread of its
own, in batches, so that fetching goes on while a batch is written.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import uvloop
from django.conf import settings
from django.db import DatabaseError, connections

from common.http import Egress
from common.ids import uuid7
from crawling import leases
from crawling.fetching import Page
from crawling.handover import hand_over
from crawling.leases import Claim
from crawling.visits import Pulse, Slicing, Visit

logger = logging.getLogger(__name__)

# How often a slice looks for newly due domains, and how long it lingers without any.
LOOK_SECONDS = 0.25
LINGER_SECONDS = 1.0
# How soon a pause, a cancel, a blocked domain or a lost claim acts.
WATCH_SECONDS = 0.5

Result = TypeVar("Result")


# A slice makes and drops many objects and hardly a cycle: looking for cycles as often as
# Python does by itself takes a quarter of its time.
CALM = (50_000, 20, 20)


@contextmanager
def calm_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*CALM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_slice(seconds: float | None = None) -> int:
    """Crawl for a while; answers how many pages were written."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with calm_collector(), runner:
        return runner.run(Slice(seconds or settings.CRAWL_SLICE_SECONDS).run())


class Slice:
    def __init__(self, seconds: float) -> None:
        self.worker = f"{socket.gethostname()[:24]}:{os.getpid()}:{uuid7().hex[:12]}"
        self.deadline = time.monotonic() + seconds
        self.visits: dict[uuid.UUID, asyncio.Task[None]] = {}
        self.held: dict[uuid.UUID, Claim] = {}
        self.flights: dict[uuid.UUID, tuple[Claim, asyncio.Task[Page]]] = {}
        self.written = 0
        self.trouble: Exception | None = None
        self.pulse = Pulse()
        self.pages: asyncio.Queue[Page | None] = asyncio.Queue(2 * settings.CRAWL_BATCH_PAGES)
        self._database = ThreadPoolExecutor(1, "obsrv-slice-db")

    async def run(self) -> int:
        async with Egress() as egress:
            writer = asyncio.create_task(self._write_batches())
            keeper = asyncio.create_task(self._keep_leases())
            watcher = asyncio.create_task(self._watch_claims())
            try:
                await self._crawl(egress)
            finally:
                await asyncio.gather(*self.visits.values(), return_exceptions=True)
                await self.pages.put(None)
                await writer
                keeper.cancel()
                watcher.cancel()
                await self.in_database(connections.close_all)
                self._database.shutdown()
        if self.trouble is not None:
            raise self.trouble
        return self.written

    async def in_database(self, call: Callable[..., Result], *args: Any) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._database, call, *args)

    async def _crawl(self, egress: Egress) -> None:
        slicing = Slicing(
            worker=self.worker,
            egress=egress,
            deadline=self.deadline,
            claim=self._claim,
            holds=self._holds,
            fly=self._fly,
            emit=self.pages.put,
            forget=self._forget,
            in_database=self.in_database,
            pulse=self.pulse,
        )
        idle_since = time.monotonic()
        while time.monotonic() < self.deadline and self.trouble is None:
            await self._start_visits(slicing)
            if self.visits or self.held:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > LINGER_SECONDS:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _start_visits(self, slicing: Slicing) -> None:
        self.visits = {key: visit for key, visit in self.visits.items() if not self._ended(visit)}
        free = settings.CRAWL_SLICE_DOMAINS - len(self.visits)
        if free <= 0:
            return
        for domain in await self.in_database(leases.lease_domains, self.worker, free):
            self.visits[domain.id] = asyncio.create_task(Visit(domain, slicing).run())

    @staticmethod
    def _ended(visit: asyncio.Task[None]) -> bool:
        if visit.done() and not visit.cancelled() and (error := visit.exception()):
            logger.error("a visit ended with %r", error, exc_info=error)
        return visit.done()

    async def _claim(self, domain_id: uuid.UUID, capacity: int) -> list[Claim]:
        claims = await self.in_database(leases.claim_tasks, {domain_id: capacity})
        self.held |= {claim.id: claim for claim in claims}
        return claims

    def _forget(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            if self._holds(claim):
                del self.held[claim.id]

    def _holds(self, claim: Claim) -> bool:
        return self.held.get(claim.id) is claim

    async def _fly(self, claim: Claim, fetching: Coroutine[Any, Any, Page]) -> Page | None:
        """The page of a claim; None when the claim was lost before it came."""
        flight = asyncio.create_task(fetching)
        self.flights[claim.id] = claim, flight
        try:
            return await flight
        except asyncio.CancelledError:
            # The flight alone was called off, or the whole visit with it?
            visit = asyncio.current_task()
            if visit is None or visit.cancelling():
                raise
            return None
        finally:
            if self.flights.get(claim.id, (None,))[0] is claim:
                del self.flights[claim.id]

    async def _watch_claims(self) -> None:
        while self.trouble is None:
            await asyncio.sleep(WATCH_SECONDS)
            held = list(self.held.values())
            if not held:
                continue
            try:
                lost = await self.in_database(leases.lost, held)
            except DatabaseError as error:
                self.trouble = error
                return
            self._let_go([claim for claim in held if claim.id in lost])

    def _let_go(self, lost: Iterable[Claim]) -> None:
        self._forget(lost)
        for claim in lost:
            flying, flight = self.flights.get(claim.id, (None, None))
            if flight is not None and flying is claim:
                flight.cancel()

    async def _keep_leases(self) -> None:
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(min(WATCH_SECONDS, settings.CRAWL_LEASE_SECONDS / 3))
            domains, claims = list(self.visits), list(self.held.values())
            asked = time.monotonic()
            try:
                if asked - renewed < settings.CRAWL_LEASE_SECONDS / 3:
                    mine = await self.in_database(leases.held, self.worker, domains)
                else:
                    mine = await self.in_database(leases.renew, self.worker, domains, claims)
                    renewed = asked
                    self.pulse.beat(asked)
            except DatabaseError:
                logger.warning("leases could not be looked after", exc_info=True)
                continue
            self._leave(set(domains) - mine)

    def _leave(self, domain_ids: set[uuid.UUID]) -> None:
        for domain_id in domain_ids:
            visit = self.visits.get(domain_id)
            # A second cancel would interrupt what the first one tidies up.
            if visit and not visit.cancelling():
                visit.cancel()

    async def _write_batches(self) -> None:
        """Until the last page. A database that is away does not stop the taking, or the
        visits would wait for ever: pages that cannot be written are fetched again by
        whoever claims them next."""
        while batch := await self._next_batch():
            if self.trouble is None:
                try:
                    self.written += await self.in_database(hand_over, batch)
                except Exception as error:  # noqa: BLE001  raised again when all is taken
                    self.trouble = error
            self._forget(page.claim for page in batch)

    async def _next_batch(self) -> list[Page]:
        """Up to a batch of pages, gathered for a moment; empty at the end."""
        batch: list[Page] = []
        until = time.monotonic() + settings.CRAWL_BATCH_SECONDS
        while len(batch) < settings.CRAWL_BATCH_PAGES:
            page = await self._next_page(until if batch else None)
            if page is None:
                break
            batch.append(page)
            if len(batch) == 1:
                until = time.monotonic() + settings.CRAWL_BATCH_SECONDS
        return batch

    async def _next_page(self, until: float | None) -> Page | None:
        """The next page; None when the time is up, or at the end of all pages."""
        if not self.pages.empty():
            return self._take()
        try:
            async with asyncio.timeout(None if until is None else until - time.monotonic()):
                page = await self.pages.get()
        except TimeoutError:
            return None
        if page is None:
            self.pages.put_nowait(None)
        return page

    def _take(self) -> Page | None:
        page = self.pages.get_nowait()
        if page is None:
            self.pages.put_nowait(None)
        return page
