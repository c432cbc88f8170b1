"""Old history goes, and never a row younger than its website's limit."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.partitions import Month, ensure_partitions, months_of
from monitoring import retention
from monitoring.history import TABLE
from monitoring.models import ProductHistory, ProductStatistics, Website
from tests.factories.monitoring import HistoryFactory, ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
NOW = dt.datetime(2026, 11, 18, 3, 0, tzinfo=dt.UTC)
# Days a website keeps, and the ages in hours of its rows.
SITES = st.lists(
    st.tuples(st.integers(30, 365), st.lists(st.integers(0, 24 * 500), max_size=8)),
    min_size=1,
    max_size=4,
)


def make_history(sites: list[tuple[int, list[int]]]) -> dict[uuid.UUID, set[dt.datetime]]:
    """Rows of every website; answers those that must survive."""
    young: dict[uuid.UUID, set[dt.datetime]] = {}
    for days, ages in sites:
        website = WebsiteFactory.create(retention_days=days)
        product = ProductFactory.create(website=website, approved=True)
        times = {NOW - dt.timedelta(hours=age) for age in ages}
        for at in times:
            HistoryFactory.create(product=product, crawl_timestamp=at)
        limit = NOW - dt.timedelta(days=days)
        young[website.pk] = {at for at in times if at >= limit}
    return young


@given(sites=SITES)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_exactly_the_rows_past_their_websites_limit_go(sites: list[tuple[int, list[int]]]) -> None:
    ProductHistory.objects.all().delete()
    Website.objects.all().delete()
    ensure_partitions(TABLE, now=NOW, back=18)
    young = make_history(sites)
    retention.apply(now=NOW)
    for website_id, expected in young.items():
        rows = ProductHistory.objects.filter(website_id=website_id)
        assert set(rows.values_list("crawl_timestamp", flat=True)) == expected


def test_a_month_older_than_every_limit_is_dropped_with_its_statistics_kept() -> None:
    ensure_partitions(TABLE, now=NOW, back=12)
    product = ProductFactory.create(website__retention_days=30, approved=True)
    old = dt.datetime(2026, 1, 10, tzinfo=dt.UTC)
    HistoryFactory.create(product=product, crawl_timestamp=old, price=Decimal(7))
    retention.apply(now=NOW)
    assert Month(2026, 1) not in months_of(TABLE)
    assert Month(2026, 10) in months_of(TABLE)
    kept = ProductStatistics.objects.get(product=product)
    assert (kept.month, kept.min_price, kept.total_snapshots) == (
        dt.date(2026, 1, 1),
        Decimal(7),
        1,
    )


def test_one_clients_short_limit_leaves_anothers_month_alone() -> None:
    ensure_partitions(TABLE, now=NOW, back=12)
    old = NOW - dt.timedelta(days=200)
    short = ProductFactory.create(website__retention_days=30)
    long = ProductFactory.create(website__retention_days=365)
    for product in (short, long):
        HistoryFactory.create(product=product, crawl_timestamp=old)
    retention.apply(now=NOW)
    assert list(ProductHistory.objects.values_list("product_id", flat=True)) == [long.pk]


def test_statistics_do_not_shrink_when_the_rows_of_a_month_are_partly_gone() -> None:
    ensure_partitions(TABLE, now=NOW, back=3)
    product = ProductFactory.create(website__retention_days=30)
    for number in (15, 17, 25):
        at = dt.datetime(2026, 10, number, tzinfo=dt.UTC)
        HistoryFactory.create(product=product, crawl_timestamp=at, price=Decimal(number))
    retention.apply(now=NOW)
    retention.apply(now=NOW + dt.timedelta(days=1))
    october = ProductStatistics.objects.get(product=product, month=dt.date(2026, 10, 1))
    assert (october.min_price, october.total_snapshots) == (Decimal(15), 3)


def test_a_dry_run_says_what_would_go_and_keeps_it() -> None:
    website = WebsiteFactory.create(retention_days=30, name="Lamps")
    product = ProductFactory.create(website=website)
    HistoryFactory.create(product=product, crawl_timestamp=NOW - dt.timedelta(days=3000))
    out = StringIO()
    call_command("retention", "--dry-run", stdout=out)
    assert "Lamps: rows past 30 days: 1" in out.getvalue()
    assert ProductHistory.objects.count() == 1
    call_command("retention", stdout=out)
    assert ProductHistory.objects.count() == 0


def test_rows_without_a_month_land_in_the_default_partition_and_go_by_age_too() -> None:
    product = ProductFactory.create(website__retention_days=30)
    HistoryFactory.create(product=product, crawl_timestamp=NOW - dt.timedelta(days=4000))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {TABLE}_default")
        assert cursor.fetchone()[0] == 1
    retention.apply(now=NOW)
    assert not ProductHistory.objects.exists()
