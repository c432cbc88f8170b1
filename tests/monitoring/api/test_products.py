from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone

from monitoring.models import Website
from tests.factories.monitoring import ProductFactory

pytestmark = pytest.mark.django_db
PRODUCTS = "/api/v1/products"


def test_a_product_is_shown_in_full(reader: Any, website: Website) -> None:
    product = ProductFactory.create(
        website=website,
        approved=True,
        current_price=Decimal("1299"),
        list_price=Decimal("1499.5"),
        description="Bright.",
        attributes={"colour": "red"},
    )
    body = reader.get(f"{PRODUCTS}/{product.pk}").json()
    assert (body["price"], body["list_price"], body["currency"]) == ("1299.00", "1499.50", "EUR")
    assert (body["lowest_price"], body["approval"]) == (None, "approved")
    assert (body["description"], body["attributes"]) == ("Bright.", {"colour": "red"})
    assert body["url"] == product.original_url


def test_products_are_filtered(reader: Any, website: Website) -> None:
    now = timezone.now()
    lamp = ProductFactory.create(
        website=website,
        approved=True,
        name="Lamp",
        sku="L-1",
        gtin="4006381333931",
        brand="Bright",
        current_stock_status="out_of_stock",
        current_price=Decimal(50),
        last_changed_at=now,
    )
    ProductFactory.create(website=website, pending=True, name="Chair")
    for query in (
        {"approval": "approved"},
        {"sku": "L-1"},
        {"gtin": "4006381333931"},
        {"brand": "bright"},
        {"availability": "out_of_stock"},
        {"price_min": "50"},
        {"price_min": "20", "price_max": "50.00"},
        {"changed_after": (now - dt.timedelta(hours=1)).isoformat()},
        {"q": "lam", "website": str(website.pk)},
    ):
        found = reader.get(PRODUCTS, query).json()["items"]
        assert [item["id"] for item in found] == [str(lamp.pk)], query
    assert len(reader.get(PRODUCTS).json()["items"]) == 2


def test_pages_follow_each_other(reader: Any, website: Website) -> None:
    ProductFactory.create_batch(5, website=website)
    seen: list[str] = []
    page = reader.get(PRODUCTS, {"limit": 2, "order": "name"}).json()
    while True:
        seen += [item["name"] for item in page["items"]]
        if not page["has_more"]:
            break
        query = {"limit": 2, "order": "name", "cursor": page["next_cursor"]}
        page = reader.get(PRODUCTS, query).json()
    assert len(seen) == 5
    assert seen == sorted(seen)


def test_only_its_own_client_sees_it(client: Browser, stranger: Any, website: Website) -> None:
    product = ProductFactory.create(website=website)
    assert client.get(PRODUCTS).status_code == 401
    assert stranger.get(PRODUCTS).json()["items"] == []
    assert stranger.get(f"{PRODUCTS}/{product.pk}").status_code == 404
