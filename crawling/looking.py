"""One look at a page right now, for somebody who waits: a visit with a single claim.

The domain is leased, and robots.txt, pace, circuit, window, proxies and ledger count as
in any other visit. Of the page nothing is kept: it belongs to no task and no job.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any

from django.utils import timezone

from common.errors import CircuitOpen, DomainBlocked
from common.guard import check_target
from common.http import Egress
from common.ids import uuid7
from common.urls import host_of, normalize_url, origin_of, url_hash
from crawling import leases, robots
from crawling.fetching import Category, Failure, Page
from crawling.frontier import ensure_domains
from crawling.leases import Claim
from crawling.models import Domain
from crawling.options import Options
from crawling.visits import ROBOTS_SILENT, Slicing, Visit

# How long to wait for the host to be free, and until when something may be asked.
PATIENCE_SECONDS = 8.0
LONGEST_SECONDS = 25.0
KNOCK_SECONDS = 0.25
FETCH = Options(timeout_seconds=15)
# What is asked at the last moment, the page or robots.txt, still has its time. Nobody renews it.
HOLD_SECONDS = LONGEST_SECONDS + max(FETCH.timeout_seconds, robots.TIMEOUT_SECONDS)
BUSY = "The shop is being crawled, rests or is too slow: try again later, or send the html."


def look_at(url: str) -> Page:
    """The page, or why it cannot be had now; raises ``Refused`` where nobody may ask."""
    deadline = time.monotonic() + LONGEST_SECONDS
    target = check_target(url)
    domain = Domain.objects.get(id=ensure_domains([target])[host_of(target)])
    check_open(domain)
    claim, worker = _claim(domain, target), f"look:{uuid7().hex}"
    held = _lease(worker, domain)
    if held is None:
        return _not_now(claim, domain)
    page = _run(partial(_visit, held, worker, claim, deadline))
    return page or _not_now(claim, domain)


def check_open(domain: Domain) -> None:
    """Refuse where an operator or the circuit keeps everybody away."""
    if domain.is_blocked or not domain.is_active:
        raise DomainBlocked(f"{domain.host} is not crawled here: ask the operator.", attr="url")
    until = domain.next_allowed_at
    waits = until is not None and until > timezone.now()
    if domain.breaker_state == Domain.Breaker.OPEN and waits:
        text = f"{domain.host} failed too often and is left alone until {until:%Y-%m-%d %H:%M:%S}."
        raise CircuitOpen(text)


def _not_now(claim: Claim, domain: Domain) -> Page:
    domain.refresh_from_db()
    if domain.robots_failures:
        failure = Failure(Category.ROBOTS, ROBOTS_SILENT, transient=True)
    else:
        failure = Failure(Category.TIMEOUT, BUSY, transient=True)
    return Page(claim, timezone.now(), failure)


def robots_verdict(domain: Domain | None, url: str) -> str:
    """What the copy that is kept says: allowed, forbidden, or unknown."""
    if domain is None:
        return "unknown"
    if not domain.respect_robots:
        return "ignored"
    now = timezone.now()
    kept = robots.kept_of(domain, origin_of(url))
    rules = kept.rules(now)
    if kept.fetched_at is None or rules.unreachable_until is not None:
        return "unknown"
    return "allowed" if rules.allows(url) else "forbidden"


def _lease(worker: str, domain: Domain) -> Domain | None:
    """Wait a little for a host that is being asked, or rests."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        held = leases.lease_domain(worker, domain.pk, seconds=HOLD_SECONDS)
        if held is not None or time.monotonic() >= end:
            return held
        time.sleep(KNOCK_SECONDS)


def _claim(domain: Domain, url: str) -> Claim:
    return Claim(
        id=uuid7(),
        fence=0,
        job_id=uuid.UUID(int=0),
        domain_id=domain.pk,
        client_id=None,
        website_id=None,
        object_id=None,
        purpose="look",
        url=url,
        depth=0,
        retry_count=0,
        max_retries=0,
        url_hash=url_hash(normalize_url(url)),
        options=FETCH,
    )


class Desk:
    """Work for the database, done in the thread of whoever waits: in its connection and
    transaction. A server's own pool may be waiting for that very thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    async def ask(self, call: Callable[..., Any], *args: Any) -> Any:
        answer: Future[Any] = Future()
        self._calls.put(partial(_answer, answer, partial(call, *args)))
        return await asyncio.wrap_future(answer)

    def close(self, _done: object = None) -> None:
        self._calls.put(None)

    def serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _answer(answer: Future[Any], call: Callable[[], Any]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(call())
    except Exception as error:  # noqa: BLE001 - whoever asked gets it
        answer.set_exception(error)


def _run(visit: Callable[[Desk], Coroutine[Any, Any, Page | None]]) -> Page | None:
    desk = Desk()
    with ThreadPoolExecutor(1, "obsrv-look") as pool:
        looking = pool.submit(lambda: asyncio.run(visit(desk)))
        looking.add_done_callback(desk.close)
        desk.serve()
        return looking.result()


async def _visit(
    domain: Domain, worker: str, claim: Claim, deadline: float, desk: Desk
) -> Page | None:
    claims, pages = [claim], []

    async def give(_domain_id: uuid.UUID, _limit: int) -> list[Claim]:
        return [claims.pop()] if claims else []

    async def fly(_claim: Claim, fetching: Coroutine[Any, Any, Page]) -> Page:
        return await fetching

    async def take(page: Page) -> None:
        pages.append(page)

    def forget(_claims: Iterable[Claim]) -> None:
        """Nobody looks after this claim."""

    async with Egress() as egress:
        slicing = Slicing(
            worker=worker,
            egress=egress,
            deadline=deadline,
            claim=give,
            holds=lambda _claim: True,
            fly=fly,
            emit=take,
            forget=forget,
            in_database=desk.ask,
        )
        await Visit(domain, slicing).run()
    return pages[0] if pages else None
