"""Fetch and store, without reading: slices over a hundred hosts, politeness off. The limit
beside it is the bare fetch of the same pages through the same door."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.conf import settings

from benchmarks.figures import Figure, figure
from benchmarks.pipeline import fetch_only
from crawling import frontier
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.handover import Store
from crawling.models import CrawlJob, CrawlTask, Domain, PageValidator, StoredPage
from crawling.slices import LINGER_SECONDS, run_slice
from tests.shop.bulk import BulkShop

# What issue 3 asks of one core.
GOAL_PAGES_PER_SECOND = 1500
HOSTS = 100
PURPOSE = "bench"


def ignore(_pages: Sequence[Page]) -> Store:
    return lambda _accepted: {}


def measure(*, quick: bool) -> list[Figure]:
    products, rounds = (1000, 3) if quick else (3000, 5)
    settings.PAGE_CONSUMERS = {PURPOSE: "benchmarks.fetch.ignore"}
    walls, cores, bare = [], [], []
    with BulkShop(products=products, hosts=HOSTS, addresses=True) as shop:
        for _ in range(rounds):
            bare.append(fetch_only(shop.urls))
            wall, core = crawl(shop.urls)
            walls.append(wall)
            cores.append(core)
            shop.reprice(1.0)
    limit = sorted(bare)[len(bare) // 2]
    goal = f"goal {GOAL_PAGES_PER_SECOND}"
    return [
        figure(
            "pages fetched and stored, per second of CPU",
            cores,
            "pages/s/core",
            peer=goal,
            against=GOAL_PAGES_PER_SECOND,
        ),
        figure("same, by the clock", walls, "pages/s", peer="fetch only", against=limit),
        figure("bare fetch through the door", bare, "pages/s", peer="itself", against=limit),
    ]


def crawl(urls: list[str]) -> tuple[float, float]:
    """Pages per second by the clock and per second of this process's CPU time."""
    for model in (CrawlTask, StoredPage, PageValidator):
        model.objects.all().delete()
    job = frontier.open_job(
        kind=CrawlJob.Kind.URLS, triggered_by=CrawlJob.Trigger.MANUAL, client_id=None
    )
    assert job is not None
    frontier.submit(job, purpose=PURPOSE, targets=[Target(url) for url in urls])
    Domain.objects.update(max_concurrent_requests=2, next_allowed_at=None)
    started, cpu = time.perf_counter(), time.process_time()
    written = run_slice(120)
    cpu = time.process_time() - cpu
    seconds = time.perf_counter() - started - LINGER_SECONDS
    assert written == len(urls) == StoredPage.objects.count(), written
    return written / seconds, written / cpu
