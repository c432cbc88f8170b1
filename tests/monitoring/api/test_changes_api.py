from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring.models import Website
from tests.factories.monitoring import ChangeFactory, ProductFactory

pytestmark = pytest.mark.django_db
CHANGES = "/api/v1/changes"


def test_a_change_says_what_and_why(reader: Any, website: Website) -> None:
    change = ChangeFactory.create(product__website=website)
    body = reader.get(f"{CHANGES}/{change.pk}").json()
    assert (body["old"], body["new"], body["currency"]) == ("24.90", "19.90", "EUR")
    assert (body["kind"], body["rule"]) == ("price_changed", change.rule)
    assert (body["product_name"], body["website_id"]) == (change.product.name, str(website.pk))


def test_changes_are_filtered(reader: Any, website: Website) -> None:
    old = timezone.now() - dt.timedelta(days=9)
    price = ChangeFactory.create(product__website=website)
    stock = ChangeFactory.create(product__website=website, kind="stock_changed", occurred_at=old)
    recent = (timezone.now() - dt.timedelta(days=1)).isoformat()
    for query, found in (
        ({"kind": "stock_changed"}, {stock}),
        ({"product": str(price.product_id)}, {price}),
        ({"website": str(website.pk)}, {price, stock}),
        ({"since": recent}, {price}),
    ):
        items = reader.get(CHANGES, query).json()["items"]
        assert {item["id"] for item in items} == {str(row.pk) for row in found}, query
    nested = reader.get(f"/api/v1/products/{price.product_id}/changes").json()["items"]
    assert [item["id"] for item in nested] == [str(price.pk)]


@pytest.mark.parametrize(("query", "attr"), [({"kind": "mood"}, "kind"), ({"since": "x"}, "since")])
def test_a_bad_query_is_named(reader: Any, query: dict[str, str], attr: str) -> None:
    answer = reader.get(CHANGES, query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    reader: Any, website: Website, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    product = ProductFactory.create(website=website)
    ChangeFactory.create_batch(count, product=product)
    reader.get(CHANGES)
    with django_assert_num_queries(2):
        assert len(reader.get(CHANGES).json()["items"]) == count
    with django_assert_num_queries(3):
        reader.get(f"/api/v1/products/{product.pk}/changes")


def test_only_its_own_client_sees_it(client: Browser, stranger: Any, website: Website) -> None:
    change = ChangeFactory.create(product__website=website)
    assert client.get(CHANGES).status_code == 401
    assert stranger.get(CHANGES).json()["items"] == []
    assert stranger.get(f"{CHANGES}/{change.pk}").status_code == 404
    assert stranger.get(f"/api/v1/products/{change.product_id}/changes").status_code == 404
