"""Memory at size: 5 million checks of 55,000 products over 90 days, a million products to find
some in, and the batch write. The limits beside the figures are those of the specification."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, connections, transaction
from django.test import Client as Browser
from django.utils import timezone

from accounts import keys
from accounts.audit import SYSTEM
from accounts.models import Client
from benchmarks import cpu
from benchmarks.figures import Figure, figure
from common import partitions
from common.partitions import Month, ensure_partitions
from crawling import leases
from crawling.fetching import Page
from crawling.handover import hand_over
from crawling.models import CrawlTask, Domain
from monitoring import intake, retention, runs, series
from monitoring.history import TABLE
from monitoring.models import Product, Website

DAYS = 90
BATCH = 200
# Every product once a day, most of the time: ~5 M rows.
GENERATE = """
    INSERT INTO monitoring_producthistory
        (id, product_id, website_id, variant_key, crawl_timestamp, price, list_price, currency,
         stock_status, price_changed, stock_changed, is_doubted, price_change_pct, page_hash,
         parser_version)
    SELECT gen_random_uuid(), p.id, p.website_id, '', %(now)s - d * interval '1 day'
               - (p.n %% 1440) * interval '1 minute',
           10 + (p.n %% 500) + ((p.n + d) %% 7) / 10.0, NULL, 'EUR',
           CASE WHEN (p.n + d) %% 29 = 0 THEN 'out_of_stock' ELSE 'in_stock' END,
           (p.n + d) %% 45 = 0, (p.n + d) %% 29 = 0, false, NULL, '', '1'
    FROM (SELECT id, website_id, row_number() OVER (ORDER BY id) AS n
          FROM monitoring_product WHERE approval = 'approved' LIMIT %(products)s) p
    CROSS JOIN generate_series(%(first)s, %(last)s) AS d
"""
PRODUCTS = """
    INSERT INTO monitoring_product
        (id, created_at, updated_at, website_id, approval, discovery_score, discovery_reason,
         original_url, normalized_url, url_hash, canonical_hash, duplicate_reason,
         extraction_method, sku, gtin, mpn, brand,
         category, name, description, image_url, current_price, current_currency,
         current_stock_status, content_hash, facts_hash, page_hash, parser_version, attributes,
         provenance, notified_currency, notified_stock_status, held_currency, held_reason,
         is_active, last_changed_at, rating, canonical_hash, duplicate_reason)
    SELECT gen_random_uuid(), now() - n * interval '1 second', now(),
           (%(websites)s::uuid[])[1 + n %% %(count)s], 'approved', 1, '',
           'https://shop.example/p/' || n, 'https://shop.example/p/' || n,
           encode(sha256(n::text::bytea), 'hex'), '', '', 'json-ld', 'S-' || n, '', 'M-' || n,
           'Brand ' || n %% 300, 'Category ' || n %% 50,
           'Thing ' || n || ' ' || (ARRAY['lamp','desk','chair','sofa','shelf'])[1 + n %% 5],
           'A thing of number ' || n, '', 10 + n %% 900, 'EUR',
           CASE WHEN n %% 20 = 0 THEN 'out_of_stock' ELSE 'in_stock' END, '', '', '', '', '{}',
           '{}', 'EUR', 'in_stock', '', '', true, now() - n %% 90 * interval '1 day',
           (n %% 50) / 10.0, '', ''
    FROM generate_series(1, %(products)s) AS n
"""
CHANGES = """
    INSERT INTO monitoring_change
        (id, product_id, kind, old, new, currency, pct, rule, variant_key, note, page_hash,
         status, occurred_at, history_id)
    SELECT gen_random_uuid(), product_id, 'price_changed', '10', '9', 'EUR', -10, 'percent', '',
           '', '', 'confirmed', crawl_timestamp, id
    FROM monitoring_producthistory WHERE price_changed
"""


def measure(*, quick: bool) -> list[Figure]:
    products, watched = (50_000, 5_000) if quick else (1_000_000, 55_500)
    api, website = prepare(products, watched)
    ids = list(Product.objects.values_list("id", flat=True)[:watched])
    picked = random.Random(7).sample(ids, 200)
    now = timezone.now()
    since = now - dt.timedelta(days=DAYS)
    week = (now - dt.timedelta(days=7)).isoformat()
    figures = [
        *p99("90 days of a product", lambda pk: series.points(pk, since, now), picked, 10),
        *p99(
            "interval=day over 90 days",
            lambda pk: series.buckets(pk, "day", since, now, limit=400),
            picked,
            30,
        ),
        *p99("GET /changes of 7 days", lambda _: get(api, "changes", since=week), picked, 50),
        *p99("GET /products, newest", lambda _: get(api, "products"), picked, 100),
        *p99(
            "GET /products?brand&price",
            lambda _: get(api, "products", brand=f"brand {_random(300)}", price_min="100"),
            picked,
            100,
        ),
        *p99(
            "GET /products?website&availability",
            lambda _: get(api, "products", website=website.pk, availability="out_of_stock"),
            picked,
            100,
        ),
        *p99(
            "GET /products?q",
            lambda _: get(api, "products", q=f"thing {_random(products)} "),
            picked,
            100,
        ),
    ]
    return [*figures, *write_figures(9 if quick else 15), *retention_figures()]


def _random(limit: int) -> int:
    return random.randrange(1, limit)


def prepare(products: int, watched: int) -> tuple[Browser, Website]:
    now = timezone.now()
    ensure_partitions(TABLE, now=now, back=5)
    with connection.cursor() as cursor:
        # What an earlier run left: row by row it would take as long as the run.
        cursor.execute("TRUNCATE monitoring_website, monitoring_producthistory CASCADE")
    Client.objects.filter(email="memory@example.com").delete()
    client = Client.objects.create(
        name="Memory", email="memory@example.com", webhook_secret_current="whsec_eA=="
    )
    websites = [
        Website.objects.create(
            client=client,
            name=f"Shop {n}",
            base_url=f"https://shop{n}.example/",
            base_url_hash=str(n),
        )
        for n in range(20)
    ]
    values: dict[str, Any] = {
        "websites": [w.pk for w in websites],
        "count": len(websites),
        "products": products,
    }
    with connection.cursor() as cursor:
        cursor.execute(PRODUCTS, values)
        for first in range(0, DAYS, 10):
            span: dict[str, Any] = {
                "now": now,
                "products": watched,
                "first": first,
                "last": first + 9,
            }
            cursor.execute(GENERATE, span)
        cursor.execute(CHANGES)
        cursor.execute("VACUUM ANALYZE")
    _, key = keys.issue(
        client=client, name="bench", scopes=["read"], actor=SYSTEM, rate_limit_rpm=1_000_000
    )
    return Browser(headers={"authorization": f"Bearer {key}"}), websites[0]


def get(api: Browser, noun: str, **query: Any) -> None:
    answer = api.get(f"/api/v1/{noun}", query)
    assert answer.status_code == 200, answer.content


def p99(
    name: str, job: Callable[[uuid.UUID], object], ids: list[uuid.UUID], limit: int
) -> list[Figure]:
    """How long the slowest take; and the CPU of all of them, ours and the database's."""
    for pk in ids[:5]:
        job(pk)
    ours, theirs = time.process_time(), cpu.of_database()
    times = sorted(_milliseconds(job, pk) for pk in ids)
    used = time.process_time() - ours + cpu.of_database() - theirs
    worst = times[int(len(times) * 0.99) - 1]
    return [
        figure(f"{name}, p99", [worst], "ms", peer=f"limit {limit}", against=limit),
        figure("  median", times, "ms", peer=f"limit {limit}", against=limit),
        figure(
            "  CPU, PostgreSQL's too",
            [used * 1000 / len(ids)],
            "ms",
            peer=f"limit {limit}",
            against=limit,
        ),
    ]


def _milliseconds(job: Callable[[uuid.UUID], object], pk: uuid.UUID) -> float:
    started = time.perf_counter()
    job(pk)
    return (time.perf_counter() - started) * 1000


def write_figures(rounds: int) -> list[Figure]:
    """Two hundred looks at once, a tenth of them with another price."""
    client = Client.objects.get(email="memory@example.com")
    website = Website.objects.create(
        client=client, name="W", base_url="https://w.example/", base_url_hash="w", status="active"
    )
    Product.objects.bulk_create(
        Product(
            website=website,
            approval="approved",
            original_url=f"https://w.example/{n}",
            normalized_url=f"https://w.example/{n}",
            url_hash=f"{n:064d}",
        )
        for n in range(BATCH)
    )
    stores = [write_batch(website, number, store_only) for number in range(rounds + 2)][2:]
    whole = [write_batch(website, number, read_and_store) for number in range(rounds + 2)][2:]
    return [
        *batch_figures("batch of 200, 10 % changed: written", stores),
        *batch_figures("same, also read, its pages kept", whole),
    ]


def batch_figures(name: str, writes: list[Write]) -> list[Figure]:
    def row(words: str, values: list[float]) -> Figure:
        return figure(words, values, "ms", peer="limit 60", against=60)

    return [
        row(name, [one.seconds * 1000 for one in writes]),
        row("  CPU of the worker", [one.ours * 1000 for one in writes]),
        row("  CPU of PostgreSQL", [one.database * 1000 for one in writes]),
    ]


@dataclass(frozen=True, slots=True)
class Write:
    """What writing a batch took: by the clock, of our CPU, of the database's."""

    seconds: float
    ours: float
    database: float


@contextlib.contextmanager
def timed(writes: list[Write]) -> Iterator[None]:
    database, ours, started = cpu.of_database(), time.process_time(), time.perf_counter()
    yield
    seconds, used = time.perf_counter() - started, time.process_time() - ours
    writes.append(Write(seconds, used, cpu.of_database() - database))


def store_only(pages: list[Page], writes: list[Write]) -> None:
    """Snapshots, products, changes and events; what was read is at hand."""
    store = intake.receive_pages([page.identified() for page in pages])
    with timed(writes), transaction.atomic():
        verdicts = store({page.claim.id for page in pages})
    assert not any(verdict.failure for verdict in verdicts.values())
    with transaction.atomic():
        CrawlTask.objects.filter(id__in=verdicts).update(status="completed")


def read_and_store(pages: list[Page], writes: list[Write]) -> None:
    with timed(writes):
        assert hand_over(pages) == BATCH


def write_batch(website: Website, number: int, job: Callable[..., None]) -> Write:
    """The pages are made before."""
    runs.start_monitoring(website, triggered_by="manual")
    domain = Domain.objects.get(host="w.example")
    claims = leases.claim_tasks({domain.pk: BATCH})
    pages = [_page(claim, n, number) for n, claim in enumerate(claims)]
    assert len(pages) == BATCH
    writes: list[Write] = []
    job(pages, writes)
    return writes[0]


def _page(claim: leases.Claim, n: int, number: int) -> Page:
    price = 100 + (number * 7) % 50 if n % 10 == number % 10 else 100 + n % 3
    body = (
        '<html><head><script type="application/ld+json">{"@type":"Product","name":"Thing '
        f'{n}","sku":"S{n}","offers":{{"price":"{price}.00","priceCurrency":"EUR",'
        f'"availability":"https://schema.org/InStock"}}}}</script></head><!-- {number} --></html>'
    )
    return Page(claim, timezone.now(), status=200, url=claim.url, body=body.encode())


def retention_figures() -> list[Figure]:
    """A batch of deletes holds its row locks as long as it takes; a month goes at once."""
    website = Website.objects.filter(name="Shop 1").get()
    limit = timezone.now() - dt.timedelta(days=60)
    held = []
    for _ in range(9):
        started = time.perf_counter()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(retention.DELETE, [website.pk, limit, retention.BATCH])
        held.append((time.perf_counter() - started) * 1000)
    month = Month.of(timezone.now()).plus(-2)
    with reader() as waits:
        started = time.perf_counter()
        partitions.drop_month(TABLE, month)
        dropped = (time.perf_counter() - started) * 1000
    return [
        figure("batched delete holds its locks", held, "ms", peer="limit 200", against=200),
        figure("month dropped", [dropped], "ms", peer="limit 1000", against=1000),
        figure("longest wait of a reader meanwhile", waits, "ms", peer="limit 200", against=200),
    ]


@contextlib.contextmanager
def reader() -> Iterator[list[float]]:
    """Somebody who reads all the time; afterwards the longest it had to wait."""
    stop, longest = threading.Event(), [0.0]

    def last_day(pk: uuid.UUID) -> None:
        series.points(pk, timezone.now() - dt.timedelta(days=1), timezone.now())

    def read() -> None:
        pk = uuid.uuid4()
        while not stop.is_set():
            longest[0] = max(longest[0], _milliseconds(last_day, pk))
        connections.close_all()

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.2)
    try:
        yield longest
    finally:
        stop.set()
        thread.join()
