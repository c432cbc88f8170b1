from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from crawling.handover import hand_over
from extraction.items import NoProduct, Stock, Variant
from extraction.product import extract_product
from monitoring import reading
from monitoring.models import Product, ProductHistory, ProductImage, Website
from monitoring.models import Variant as Row
from tests.monitoring.test_intake import body, claim, pages, watch, website

pytestmark = pytest.mark.django_db
__all__ = ["website"]


def look(
    website: Website, monkeypatch: pytest.MonkeyPatch, *prices: str, images: tuple[str, ...] = ()
) -> None:
    """One check of a page whose variants cost this."""

    def read(content: bytes, url: str, **known: Any) -> object:
        item = extract_product(content, url, **known)
        assert not isinstance(item, NoProduct)
        sizes = tuple(
            Variant(
                f"L-{n}", (("size", str(n)),), Decimal(price), "EUR", Stock.IN_STOCK, sku=f"L-{n}"
            )
            for n, price in enumerate(prices)
        )
        return replace(item, variants=sizes, images=images, stock_quantity=3)

    monkeypatch.setattr(reading, "extract_product", read)
    # A page that says something else has other bytes.
    hand_over(pages(claim(website), body() + repr((prices, images)).encode()))


def test_each_variant_is_a_row_with_a_series_of_its_own(
    website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    (product,) = watch(website, 1)
    look(website, monkeypatch, "10.00", "20.00")
    look(website, monkeypatch, "10.00", "18.00")
    assert sorted(Row.objects.values_list("key", "price")) == [
        ("L-0", Decimal(10)),
        ("L-1", Decimal(18)),
    ]
    assert Row.objects.get(key="L-1").options == {"size": "1"}
    series = ProductHistory.objects.filter(product_id=product.pk, variant_key="L-1")
    assert list(series.order_by("crawl_timestamp").values_list("price", "price_changed")) == [
        (Decimal(20), False),
        (Decimal(18), True),
    ]
    assert ProductHistory.objects.filter(variant_key="L-0").count() == 1
    assert ProductHistory.objects.filter(variant_key="").count() == 2


def test_images_and_stock_are_those_of_the_last_page(
    website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(website, 1)
    look(website, monkeypatch, images=("https://shop.example/a.jpg", "https://shop.example/b.jpg"))
    look(website, monkeypatch, images=("https://shop.example/b.jpg",))
    assert list(ProductImage.objects.values_list("url", "position")) == [
        ("https://shop.example/b.jpg", 0)
    ]
    assert Product.objects.get().stock_quantity == 3
