"""Fetch and store, without reading: slices over a hundred hosts, politeness off; then the
same pages once more, unchanged. The limit beside it is the bare fetch of the same pages
through the same door."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import uvloop
from django.conf import settings

from benchmarks.figures import Figure, figure
from benchmarks.stores import forget_pages
from common.http import Egress
from crawling import frontier
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.handover import Store
from crawling.models import CrawlJob, CrawlTask, Domain, StoredPage
from crawling.slices import LINGER_SECONDS, run_slice
from tests.shop.bulk import BulkShop

# What issue 3 asks of one core, and of pages that did not change.
GOAL_PAGES_PER_SECOND = 1500
HOSTS = 100
CONNECTIONS = 32
PURPOSE = "bench"


@dataclass(frozen=True, slots=True)
class Run:
    pages: int
    seconds: float
    cpu_seconds: float

    @property
    def by_the_clock(self) -> float:
        return self.pages / self.seconds

    @property
    def per_core(self) -> float:
        return self.pages / self.cpu_seconds


def ignore(_pages: Sequence[Page]) -> Store:
    return lambda _accepted: {}


def measure(*, quick: bool) -> list[Figure]:
    products, rounds = (3000, 3) if quick else (10_000, 5)
    settings.PAGE_CONSUMERS = {PURPOSE: "benchmarks.fetch.ignore"}
    full: list[Run] = []
    same: list[Run] = []
    bare: list[float] = []
    with BulkShop(products=products, hosts=HOSTS, addresses=True) as shop:
        for _ in range(rounds):
            bare.append(fetch_only(shop.urls))
            forget_pages()
            full.append(crawl(shop.urls))
            assert StoredPage.objects.count() == products
            same.append(crawl(shop.urls))
            assert CrawlTask.objects.filter(http_status=304, from_cache=True).count() == products
    return figures(full, same, bare)


def figures(full: list[Run], same: list[Run], bare: list[float]) -> list[Figure]:
    cores = [run.per_core for run in full]
    goal = f"goal {GOAL_PAGES_PER_SECOND}"
    stored, limit = "stored in the same round", statistics.median(bare)
    return [
        figure(
            "pages fetched and stored, per second of CPU",
            cores,
            "pages/s/core",
            peer=goal,
            against=GOAL_PAGES_PER_SECOND,
        ),
        figure(
            "unchanged pages (304), per second of CPU",
            [run.per_core for run in same],
            "pages/s/core",
            peer=stored,
            against=statistics.median(cores),
        ),
        figure(
            "fetched and stored, by the clock",
            [run.by_the_clock for run in full],
            "pages/s",
            peer="fetch only",
            against=limit,
        ),
        figure(
            "unchanged, by the clock",
            [run.by_the_clock for run in same],
            "pages/s",
            peer=stored,
            against=statistics.median(run.by_the_clock for run in full),
        ),
        figure("bare fetch through the door", bare, "pages/s", peer="itself", against=limit),
    ]


def crawl(urls: list[str]) -> Run:
    job = frontier.open_job(
        kind=CrawlJob.Kind.URLS, triggered_by=CrawlJob.Trigger.MANUAL, client_id=None
    )
    assert job is not None
    CrawlTask.objects.all().delete()
    frontier.submit(job, purpose=PURPOSE, targets=[Target(url) for url in urls])
    Domain.objects.update(max_concurrent_requests=2, next_allowed_at=None)
    started, cpu = time.perf_counter(), time.process_time()
    written = run_slice(120)
    cpu = time.process_time() - cpu
    # A slice lingers for new work before it ends; that is waiting, not crawling.
    seconds = time.perf_counter() - started - LINGER_SECONDS
    assert written == len(urls), written
    return Run(written, seconds, cpu)


def fetch_only(urls: Sequence[str]) -> float:
    async def run() -> None:
        waiting = iter(urls)

        async def work(egress: Egress) -> None:
            for url in waiting:
                await egress.request("GET", url)

        async with Egress() as egress:
            await asyncio.gather(*(work(egress) for _ in range(CONNECTIONS)))

    started = time.perf_counter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    return len(urls) / (time.perf_counter() - started)
