from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from django.utils import timezone

from crawling.trends import job_hours, last_hours, last_runs
from monitoring import trends
from monitoring.models import Product
from tests.factories.crawling import DomainFactory, JobFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


def seen(product: Product, days_ago: float, price: str | None, **other: object) -> None:
    at = timezone.now() - days_ago * DAY
    HistoryFactory.create(
        product=product, crawl_timestamp=at, price=price and Decimal(price), **other
    )


def test_prices_are_compared_with_those_of_a_day_and_a_month_ago() -> None:
    product = ProductFactory.create(current_price=Decimal(90))
    seen(product, 30, "120")
    seen(product, 1.5, "100")
    seen(product, 0.1, "90")
    trend = trends.trends_of([product])[product.pk]
    assert (trend.day_pct, trend.month_pct) == (Decimal(-10), Decimal(-25))
    known = [price for price in trend.prices if price is not None]
    assert (known[0], known[-1]) == (Decimal(120), Decimal(90))
    assert len(trend.prices) == 31


def test_a_day_without_a_check_has_the_price_of_the_day_before() -> None:
    product = ProductFactory.create(current_price=Decimal(100))
    seen(product, 20.5, "80")
    trend = trends.trends_of([product])[product.pk]
    assert trend.prices.count(Decimal(80)) == 21
    assert trend.day_pct == 25


def test_what_is_doubted_or_of_another_currency_or_variant_is_no_price() -> None:
    product = ProductFactory.create(current_price=Decimal(100))
    seen(product, 3, "1", is_doubted=True)
    seen(product, 4, "2", currency="USD")
    seen(product, 5, "3", variant_key="red")
    trend = trends.trends_of([product])[product.pk]
    assert set(trend.prices) == {None}
    assert trend.month_pct is None


def test_changes_are_counted_by_day_and_direction() -> None:
    ChangeFactory.create(pct=Decimal(-5))
    ChangeFactory.create(pct=Decimal(5))
    ChangeFactory.create(kind="back_in_stock", pct=None)
    ChangeFactory.create(status="quarantined")
    ChangeFactory.create(occurred_at=timezone.now() - 40 * DAY)
    days = trends.changes_by_day()
    assert len(days) == 30
    assert (days[-1].down, days[-1].up, days[-1].other) == (1, 1, 1)
    assert sum(day.down for day in days) == 1


def test_candidates_are_counted_by_score() -> None:
    for score in (0, 0.55, 0.95, 1):
        ProductFactory.create(discovery_score=score, pending=True)
    ProductFactory.create(discovery_score=0.95, approved=True)
    assert trends.pending_scores() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 2]


def test_requests_are_counted_by_the_hour_with_their_times() -> None:
    domain, now = DomainFactory.create(), timezone.now()
    for spent, error, same in ((100, "", False), (300, "", True), (5000, "timeout", False)):
        domain.ledger.create(
            url="https://shop.example/",
            started_at=now,
            rule="x",
            response_ms=spent,
            error_category=error,
            not_modified=same,
        )
    domain.ledger.create(url="https://shop.example/", started_at=now - 2 * DAY, rule="x")
    hours = last_hours()
    assert len(hours) == 24
    last = hours[-1]
    assert (last.new, last.unchanged, last.failed, last.median_ms) == (1, 1, 1, 300)
    assert sum(hour.new for hour in hours) == 1


def test_pages_are_counted_by_the_hour_their_job_began() -> None:
    JobFactory.create(total=10, processed=6, errors=2)
    last = job_hours()[-1]
    assert (last.done, last.failed, last.waiting) == (4, 2, 4)


def test_the_last_runs_of_each_website_come_in_their_order() -> None:
    website, other = WebsiteFactory.create(), WebsiteFactory.create()
    for status in ("failed", "success", "running"):
        JobFactory.create(website_id=website.pk, status=status)
    JobFactory.create(website_id=website.pk, kind="discovery")
    runs = last_runs([website.pk, other.pk], most=2)
    assert [run.status for run in runs[website.pk]] == ["success", "running"]
    assert runs[other.pk] == []
