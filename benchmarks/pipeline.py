"""The whole road of a product page in one worker process: fetched, read, stored, compared,
told. A page counts only if the database knows its true price, currency and stock, its history
row is there, and, where its price changed, the signed webhook has arrived.

Before the first of three runs nothing is known of the pages: all are fetched, read and stored.
Before the second their bytes are known, as of a shop without ETags: all are fetched, those that
differ are read. In the third the shop answers 304. Rates are pages per second of the
worker's CPU, so that a busy machine does not spoil them; wall time stands beside.
"""

from __future__ import annotations

import importlib
import statistics
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils import timezone

from accounts.models import Client
from accounts.webhook_secrets import new_secret
from benchmarks import cpu
from benchmarks.figures import Figure, figure
from benchmarks.receiver import BulkReceiver
from benchmarks.stores import forget_conditions, forget_pages
from common.partitions import ensure_partitions
from common.urls import normalize_url, url_hash
from crawling.models import CrawlJob
from crawling.slices import LINGER_SECONDS, run_slice
from monitoring import runs
from monitoring.history import TABLE
from monitoring.models import Product, ProductHistory, Website
from notifications.delivery import deliver_due
from notifications.models import WebhookEndpoint
from tests.shop.bulk import BulkShop
from tests.shop.bulk_pages import TYPICAL, Truth

# What issue 5 asks of this machine, in pages per second and core.
GOAL, GOAL_UNCHANGED = 1200, 4000
CHANGED = 0.1
# Milliseconds of the fixed loop on this machine when nobody shares it.
QUIET_LOOP = 60
PEERS = ("scrapy", "changedetection")


@dataclass(frozen=True, slots=True)
class Turn:
    """One run over all products of the shop."""

    right: int
    seconds: float
    crawling: float
    sending: float
    database: float

    @property
    def per_second(self) -> float:
        return self.right / (self.crawling + self.sending)

    @property
    def milliseconds(self) -> float:
        """Of the worker's CPU for a page."""
        return 1000 / self.per_second


def measure(*, quick: bool, peers: Collection[str] = ()) -> list[Figure]:
    products, rounds = (500, 3) if quick else (2000, 5)
    whole: list[Turn] = []
    plain: list[Turn] = []
    same: list[Turn] = []
    loops: list[float] = []
    with watched(BulkShop(products=products, fill=TYPICAL)) as bench:
        bench.run()
        for _ in range(rounds):
            whole.append(bench.turn(forget_pages))
            plain.append(bench.turn(forget_conditions))
            same.append(bench.run())
            loops.append(1000 * cpu.of_fixed_loop())
    figures = [
        *turn_figures("all read, 10 % re-priced", whole, products, GOAL),
        *turn_figures("all fetched, 10 % re-priced, 90 % the same bytes", plain, products, GOAL),
        *turn_figures("unchanged pages (304)", same, products, GOAL_UNCHANGED),
        figure("a fixed loop of Python, CPU", loops, "ms", peer="when quiet", against=QUIET_LOOP),
    ]
    for peer in peers:
        figures += importlib.import_module(f"benchmarks.peers.beside_{peer}").measure(quick=quick)
    return figures


def turn_figures(name: str, turns: list[Turn], products: int, goal: int) -> list[Figure]:
    rates = [turn.per_second for turn in turns]
    return [
        figure(name, rates, "pages/s/core", peer=f"goal {goal}", against=goal),
        figure(
            "  by the clock",
            [turn.right / turn.seconds for turn in turns],
            "pages/s",
            peer="per second of CPU",
            against=statistics.median(rates),
        ),
        figure(
            "  right in all, told where changed",
            [turn.right for turn in turns],
            "pages",
            peer="products",
            against=products,
        ),
        _share("  CPU of crawling", [turn.crawling for turn in turns], products),
        _share("  CPU of sending webhooks", [turn.sending for turn in turns], products),
        _share("  CPU of PostgreSQL, apart", [turn.database for turn in turns], products),
    ]


def _share(name: str, seconds: list[float], pages: int) -> Figure:
    values = [one * 1000 / pages for one in seconds]
    return figure(name, values, "ms/page", peer="1 ms", against=1.0)


class Watched:
    """A shop whose products are all watched, with a receiver of what is told of them."""

    def __init__(self, shop: BulkShop, receiver: BulkReceiver) -> None:
        self.shop, self.receiver = shop, receiver
        settings.WEBHOOK_ALLOW_HTTP = True
        ensure_partitions(TABLE, now=timezone.now())
        self.website = watch(shop.urls)
        WebhookEndpoint.objects.create(
            client=self.website.client,
            url=f"{receiver.url}/hook",
            events=["product.*"],
            secret_current=receiver.secret,
        )
        rows = Product.objects.filter(website=self.website).values_list("id", "original_url")
        numbers = {url: index for index, url in enumerate(shop.urls)}
        self.numbers = {pk: numbers[url] for pk, url in rows}

    def turn(self, forget: Callable[[], None]) -> Turn:
        """A run over the shop with a tenth of its prices changed."""
        changed = self.shop.reprice(CHANGED)
        forget()
        return self.run(changed)

    def run(self, changed: Collection[int] = ()) -> Turn:
        job = runs.start_monitoring(self.website, triggered_by="manual")
        assert job is not None
        connections.close_all()
        started, before, served = time.perf_counter(), time.process_time(), cpu.of_database()
        run_slice(300)
        crawled = time.process_time()
        # A slice lingers for new work before it ends; that is waiting, not crawling.
        started += LINGER_SECONDS
        deliver_due(60)
        seconds, sent = time.perf_counter() - started, time.process_time()
        database = cpu.of_database() - served
        return Turn(
            right=self._right(job, changed),
            seconds=seconds,
            crawling=crawled - before,
            sending=sent - crawled,
            database=database,
        )

    def _right(self, job: CrawlJob, changed: Collection[int]) -> int:
        truths = {pk: as_told(self.shop.truth(number)) for pk, number in self.numbers.items()}
        rows = ProductHistory.objects.filter(crawl_job_id=job.pk, variant_key="")
        recorded = _said(rows, "product_id", "price", "currency", "stock_status")
        known = _said(
            Product.objects.filter(website=self.website),
            "id",
            "current_price",
            "current_currency",
            "current_stock_status",
        )
        told = self._told()
        moved = set(changed)
        expected = {pk for pk, number in self.numbers.items() if number in moved}
        return sum(
            known[pk] == recorded.get(pk) == truth and (pk not in expected or told.get(pk) == truth)
            for pk, truth in truths.items()
        )

    def _told(self) -> Mapping[uuid.UUID, Any]:
        book = self.receiver.take()
        assert not book["forged"], book["forged"]
        objects = [
            event["data"]["object"]
            for event in book["events"]
            if event["type"] == "product.price_changed"
        ]
        return {
            uuid.UUID(one["id"]): (f"{one['price']}00", one["currency"], one["stock_status"])
            for one in objects
        }


def _said(rows: Any, *names: str) -> Mapping[uuid.UUID, Any]:
    return {
        pk: (str(price), currency, stock) for pk, price, currency, stock in rows.values_list(*names)
    }


def as_told(truth: Truth) -> tuple[str, str, str]:
    stock = "in_stock" if truth.in_stock else "out_of_stock"
    return f"{truth.price:.4f}", truth.currency, stock


@contextmanager
def watched(shop: BulkShop) -> Iterator[Watched]:
    with shop, BulkReceiver(new_secret()) as receiver:
        yield Watched(shop, receiver)


def watch(urls: list[str]) -> Website:
    Client.objects.filter(email="bench@example.com").delete()
    client = Client.objects.create(
        name="Bench", email="bench@example.com", webhook_secret_current=new_secret()
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
