from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from common.partitions import ensure_partitions
from monitoring.models import Product, ProductHistory, Website
from tests.factories.monitoring import HistoryFactory, ProductFactory

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


@pytest.fixture
def product(website: Website) -> Product:
    return ProductFactory.create(website=website, approved=True)


@pytest.fixture
def path(product: Product) -> str:
    return f"/api/v1/products/{product.pk}/history"


def test_the_last_ninety_days_are_shown_newest_first(
    reader: Any, product: Product, path: str
) -> None:
    now = timezone.now()
    for days in (1, 30, 89, 91):
        HistoryFactory.create(product=product, crawl_timestamp=now - days * DAY)
    HistoryFactory.create()
    items = reader.get(path).json()["items"]
    times = [item["crawl_timestamp"] for item in items]
    assert len(times) == 3
    assert times == sorted(times, reverse=True)
    assert (items[0]["price"], items[0]["currency"]) == ("19.90", "EUR")


def test_a_span_is_taken(reader: Any, product: Product, path: str) -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    for days in range(5):
        HistoryFactory.create(product=product, crawl_timestamp=start + days * DAY)
    query = {"from": (start + DAY).isoformat(), "to": (start + 3 * DAY).isoformat()}
    assert len(reader.get(path, query).json()["items"]) == 3
    assert len(reader.get(path, {"to": start.isoformat()}).json()["items"]) == 1


def test_pages_follow_each_other(reader: Any, product: Product, path: str) -> None:
    start = timezone.now() - 5 * DAY
    made = [
        HistoryFactory.create(product=product, crawl_timestamp=start + n * DAY) for n in range(5)
    ]
    first = reader.get(path, {"limit": 3}).json()
    rest = reader.get(path, {"limit": 3, "cursor": first["next_cursor"]}).json()
    seen = [item["id"] for item in first["items"] + rest["items"]]
    assert seen == [str(row.pk) for row in reversed(made)]
    assert not rest["has_more"]


def test_only_the_months_asked_for_are_touched(reader: Any, product: Product, path: str) -> None:
    ensure_partitions(ProductHistory._meta.db_table, now=timezone.now())
    with CaptureQueriesContext(connection) as queries:
        reader.get(path, {"from": timezone.now().isoformat()})
    asked = next(q["sql"] for q in queries if "producthistory" in q["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    month = timezone.now().strftime("producthistory_%Y_%m")
    last = (timezone.now().replace(day=1) - DAY).strftime("producthistory_%Y_%m")
    assert month in plan
    assert last not in plan


@pytest.mark.parametrize(
    ("query", "attr"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
        ({"cursor": "x"}, "cursor"),
        ({"interval": "hour"}, "interval"),
    ],
)
def test_a_bad_query_is_named(reader: Any, path: str, query: dict[str, str], attr: str) -> None:
    answer = reader.get(path, query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_the_beginning_of_time_is_no_error(reader: Any, path: str) -> None:
    assert reader.get(path, {"to": "0001-01-02T00:00:00Z"}).json()["items"] == []


def test_only_its_own_client_sees_it(client: Browser, stranger: Any, path: str) -> None:
    assert client.get(path).status_code == 401
    assert stranger.get(path).status_code == 404
