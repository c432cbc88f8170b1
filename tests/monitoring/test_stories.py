from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from django.utils import timezone

from monitoring import stories
from monitoring.stories import Difference
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>'


def test_two_readings_are_compared_value_by_value() -> None:
    old = {"offers": [{"price": "10", "seller": "A"}], "name": "Lamp", "tags": ["a", "b"]}
    new = {"offers": [{"price": "9"}], "name": "Lamp", "tags": ["a", "c"], "gtin": "4"}
    assert stories.differences(old, new) == [
        Difference("gtin", None, "4"),
        Difference("offers.0.price", "10", "9"),
        Difference("offers.0.seller", "A", None),
        Difference("tags", "a, b", "a, c"),
    ]


def test_the_story_of_a_product_has_its_steps_bands_marks_and_last_readings() -> None:
    product = ProductFactory.create(name=HOSTILE, approved=True)
    now = timezone.now()
    for days, price, stock in (
        (9, "20", "in_stock"),
        (6, "20", "out_of_stock"),
        (3, "15", "in_stock"),
    ):
        HistoryFactory.create(
            product=product,
            crawl_timestamp=now - dt.timedelta(days=days),
            price=Decimal(price),
            stock_status=stock,
            raw_crawl_data={"price": price},
        )
    at = now - dt.timedelta(days=3)
    ChangeFactory.create(product=product, occurred_at=at, old=HOSTILE)
    story = stories.tell(product, 30)
    assert "out of stock" in story.chart
    assert "min 15.00 · avg 18.33 · max 20.00" in story.chart
    assert story.chart.count("<circle") == 1
    assert "<script" not in story.chart
    assert story.readings is not None
    assert story.readings.differences == [Difference("price", "20", "15")]
    assert [check.price for check in story.checks] == [15, 20, 20]


def test_a_product_without_history_has_a_story_too() -> None:
    product = ProductFactory.create()
    story = stories.tell(product, 90)
    assert "No price in this time." in story.chart
    assert (story.readings, list(story.checks), list(story.changes)) == (None, [], [])


@pytest.mark.parametrize(("age", "days"), [(0, 1), (3, 7), (20, 30), (60, 90), (400, 90)])
def test_the_chart_begins_with_the_range_a_product_fills(age: int, days: int) -> None:
    product = ProductFactory.create()
    product.created_at = timezone.now() - dt.timedelta(days=age)
    assert stories.fitting_range(product) == days
