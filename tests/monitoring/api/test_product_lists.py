"""What the lists of candidates and of products have in common."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from monitoring.models import Website
from tests.factories.monitoring import ProductFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "query", "attr"),
    [
        ("candidates", {"score_min": "2"}, "score_min"),
        ("candidates", {"approval": "maybe"}, "approval"),
        ("candidates", {"website": "x"}, "website"),
        ("candidates", {"colour": "red"}, "colour"),
        ("products", {"price_min": "cheap"}, "price_min"),
        ("products", {"price_max": "1e99999"}, "price_max"),
        ("products", {"price_min": "-1"}, "price_min"),
        ("products", {"availability": "somewhere"}, "availability"),
        ("products", {"changed_after": "yesterday"}, "changed_after"),
        ("products", {"website": "mine"}, "website"),
    ],
)
def test_a_bad_query_is_named(reader: Any, path: str, query: dict[str, str], attr: str) -> None:
    answer = reader.get(f"/api/v1/{path}", query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


@pytest.mark.parametrize("path", ["candidates", "products"])
@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    reader: Any,
    website: Website,
    path: str,
    count: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ProductFactory.create_batch(count, website=website)
    reader.get(f"/api/v1/{path}")
    with django_assert_num_queries(2):
        assert len(reader.get(f"/api/v1/{path}").json()["items"]) == count
