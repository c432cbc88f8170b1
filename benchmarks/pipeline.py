"""The whole road of a product page in one worker process: fetch, extract, store, compare,
publish. The limit beside it is the bare fetch of the same pages through the same door.
Nothing is known of the pages before a full run, so all are fetched, read and stored; the
run after it finds them unchanged, and the shop answers 304."""

from __future__ import annotations

import asyncio
import statistics
import time

import uvloop
from django.utils import timezone

from accounts.models import Client
from benchmarks.figures import Figure, figure
from benchmarks.stores import forget_pages
from common.http import Egress
from common.partitions import ensure_partitions
from common.urls import normalize_url, url_hash
from crawling.models import CrawlTask
from crawling.slices import LINGER_SECONDS, run_slice
from monitoring import runs
from monitoring.models import Change, Product, ProductHistory, Website
from tests.shop.bulk import BulkShop

# What issue 2 asks of this machine.
GOAL_PAGES_PER_SECOND = 300
CONNECTIONS = 32


def measure(*, quick: bool) -> list[Figure]:
    products, rounds = (500, 3) if quick else (2000, 5)
    ensure_partitions(ProductHistory._meta.db_table, now=timezone.now())
    with BulkShop(products=products) as shop:
        website = watch(shop.urls)
        rates, bare, cpu, same, same_cpu = [], [], [], [], []
        for _ in range(rounds):
            bare.append(fetch_only(shop.urls))
            forget_pages()
            rate, per_page = crawl(website)
            rates.append(rate)
            cpu.append(per_page)
            rate, per_page = crawl(website)
            same.append(rate)
            same_cpu.append(per_page)
            shop.reprice(0.1)
        check(website, products, rounds)
    fetch_rate = sorted(bare)[len(bare) // 2]
    return [
        figure(
            "pages crawled, stored and compared",
            rates,
            "pages/s",
            peer=f"goal {GOAL_PAGES_PER_SECOND}",
            against=GOAL_PAGES_PER_SECOND,
        ),
        figure("same, of the bare fetch", rates, "pages/s", peer="fetch only", against=fetch_rate),
        figure("bare fetch through the door", bare, "pages/s", peer="itself", against=fetch_rate),
        figure(
            "unchanged pages (304)",
            same,
            "pages/s",
            peer="full pages",
            against=statistics.median(rates),
        ),
        figure("CPU of the worker", cpu, "ms/page", peer="1 ms", against=1.0),
        figure(
            "same, of an unchanged page",
            same_cpu,
            "ms/page",
            peer="full pages",
            against=statistics.median(cpu),
        ),
    ]


def watch(urls: list[str]) -> Website:
    Client.objects.filter(email="bench@example.com").delete()
    client = Client.objects.create(
        name="Bench", email="bench@example.com", webhook_secret_current="whsec_eA=="
    )
    website = Website.objects.create(
        client=client, name="Bench", base_url=urls[0], base_url_hash="bench", status="active"
    )
    Product.objects.bulk_create(
        Product(
            website=website,
            approval=Product.Approval.APPROVED,
            original_url=url,
            normalized_url=normalize_url(url),
            url_hash=url_hash(normalize_url(url)),
        )
        for url in urls
    )
    return website


def crawl(website: Website) -> tuple[float, float]:
    """Pages per second and CPU milliseconds per page of one run."""
    runs.start_monitoring(website, triggered_by="manual")
    started, cpu = time.perf_counter(), time.process_time()
    pages = run_slice(120)
    # A slice lingers for new work before it ends; that is waiting, not crawling.
    seconds = time.perf_counter() - started - LINGER_SECONDS
    return pages / seconds, (time.process_time() - cpu) * 1000 / pages


def fetch_only(urls: list[str]) -> float:
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


def check(website: Website, products: int, rounds: int) -> None:
    """A figure counts only if the work was done."""
    done = CrawlTask.objects.filter(website_id=website.pk, status="completed").count()
    rows = ProductHistory.objects.filter(website_id=website.pk).count()
    readable = done // (2 * rounds)
    unchanged = CrawlTask.objects.filter(website_id=website.pk, from_cache=True, http_status=304)
    assert unchanged.count() >= readable * rounds, unchanged.count()
    assert rows == done, (rows, done)
    assert readable >= products * 0.8, f"only {readable} of {products} pages could be read"
    assert Change.objects.filter(product__website=website).exists()
