from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.feeds import detect_platform, feed_url, read_feed
from extraction.scripted import looks_script_built
from extraction.url_scores import is_never_asked, score_url

SHOPIFY = "https://a.example/products.json?limit=250&page=1"
WOO = "https://a.example/wp-json/wc/store/v1/products?per_page=100&page=1"


def shopify(**fields: Any) -> bytes:
    variant = {"price": "10.00", "compare_at_price": "12.00", "available": False, "sku": "S"}
    row = {"handle": "lamp", "title": "Lamp", "vendor": "V", "body_html": "<b>Big</b> lamp"}
    return json.dumps({"products": [row | {"variants": [variant]} | fields]}).encode()


def test_a_shopify_list_gives_products_with_their_addresses() -> None:
    feed = read_feed(shopify(), SHOPIFY)
    assert feed
    lamp = feed.items[0]
    assert (lamp.url, lamp.name, lamp.brand) == ("https://a.example/products/lamp", "Lamp", "V")
    assert (lamp.price, lamp.list_price) == (Decimal("10.00"), Decimal("12.00"))
    assert (lamp.stock, lamp.sku, lamp.description) == ("out_of_stock", "S", "Big lamp")
    assert feed.next_url == ""


def test_a_full_page_leads_to_the_next() -> None:
    row = {"handle": "x", "title": "X"}
    body = json.dumps({"products": [row | {"handle": f"x{n}"} for n in range(250)]}).encode()
    feed = read_feed(body, SHOPIFY)
    assert feed
    assert feed.next_url == feed_url("shopify", "https://a.example", 2)


def test_a_woocommerce_list_counts_in_the_smallest_unit() -> None:
    prices = {"price": "1999", "regular_price": "2499", "currency_code": "EUR"}
    row = {"name": "Lamp &amp; foot", "permalink": "https://a.example/p/lamp", "is_in_stock": True}
    feed = read_feed(
        json.dumps([row | {"prices": prices | {"currency_minor_unit": 2}}]).encode(), WOO
    )
    assert feed
    lamp = feed.items[0]
    assert (lamp.name, lamp.price, lamp.list_price) == (
        "Lamp & foot",
        Decimal("19.99"),
        Decimal("24.99"),
    )
    assert (lamp.currency, lamp.stock) == ("EUR", "in_stock")


def test_products_on_other_hosts_are_left_out() -> None:
    feed = read_feed(json.dumps([{"name": "x", "permalink": "https://b.example/p"}]).encode(), WOO)
    assert feed
    assert feed.items == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "products",
                        "handle",
                        "title",
                        "variants",
                        "price",
                        "prices",
                        "images",
                        "permalink",
                        "name",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_no_list_makes_it_raise(data: Any) -> None:
    for body, url in ((data, WOO), ({"products": data}, SHOPIFY), ([data], WOO)):
        read_feed(json.dumps(body).encode(), url)


@pytest.mark.parametrize(
    ("body", "platform"),
    [
        (b'<script src="https://cdn.shopify.com/x.js">', "shopify"),
        (b'<link href="/wp-content/plugins/woocommerce/a.css">', "woocommerce"),
        (b'<div data-mage-init="{}">', "magento"),
        (b"<html>plain</html>", ""),
    ],
)
def test_the_platform_shows_in_the_page(body: bytes, platform: str) -> None:
    assert detect_platform(body) == platform


def test_a_page_that_waits_for_scripts_is_told_from_one_that_shows_something() -> None:
    empty = b"<body><div id='root'></div><script src='/a.js'></script></body>"
    full = b"<body><div id='root'>" + b"<p>Something to read</p>" * 40 + b"</div><script></script>"
    assert looks_script_built(empty)
    assert not looks_script_built(full)
    assert not looks_script_built(b"<body><p>short</p></body>")


def test_product_addresses_score_above_lists_and_texts() -> None:
    scores = [
        score_url(f"https://a.example{path}")[0]
        for path in ("/products/lamp", "/lamp-12345.html", "/category/lamps", "/about-us")
    ]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("path", ["/cart", "/shop?add-to-cart=12", "/my-account/orders", "/login"])
def test_what_acts_or_is_private_is_never_asked_for(path: str) -> None:
    assert is_never_asked(f"https://a.example{path}")


@pytest.mark.parametrize("path", ["/cartridges/ink", "/products/basketball", "/accountants-desk"])
def test_words_that_only_begin_alike_are_asked_for(path: str) -> None:
    assert not is_never_asked(f"https://a.example{path}")
