from __future__ import annotations

from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.items import Method, NoProduct, ProductItem, Stock
from extraction.product import extract_product

URL = "https://shop.example/p/lamp"
LAMP = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Desk lamp",
    "sku": "L-1",
    "gtin13": "4006381333931",
    "brand": {"@type": "Brand", "name": "Lumo"},
    "offers": {
        "@type": "Offer",
        "price": "39.90",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    },
}


def page(*blocks: object, head: str = "") -> bytes:
    scripts = "".join(
        f'<script type="application/ld+json">{b if isinstance(b, str) else orjson.dumps(b).decode()}</script>'
        for b in blocks
    )
    return f"<html><head>{head}{scripts}</head><body>Hello</body></html>".encode()


def product(body: bytes) -> ProductItem:
    item = extract_product(body, URL)
    assert isinstance(item, ProductItem), item
    return item


def test_a_json_ld_product_is_read_whole() -> None:
    item = product(page(LAMP))
    assert (item.name, item.price, item.currency) == ("Desk lamp", Decimal("39.9"), "EUR")
    assert (item.stock, item.sku, item.gtin, item.brand) == (
        Stock.IN_STOCK,
        "L-1",
        "4006381333931",
        "Lumo",
    )
    assert item.method == Method.JSON_LD


@pytest.mark.parametrize(
    "block",
    [
        {"@graph": [{"@type": "WebPage"}, LAMP]},
        [{"@type": "BreadcrumbList"}, LAMP],
        {"@type": "ItemPage", "mainEntity": LAMP},
        LAMP | {"offers": [LAMP["offers"]]},
        LAMP | {"@type": ["Product", "Thing"]},
        LAMP | {"offers": {"@type": "AggregateOffer", "lowPrice": 39.9, "priceCurrency": "EUR"}},
        LAMP | {"offers": {"priceSpecification": {"price": "39,90", "priceCurrency": "EUR"}}},
        {"@type": "ProductGroup", "name": "Desk lamp", "hasVariant": [LAMP]},
    ],
)
def test_every_shape_of_json_ld_gives_the_price(block: object) -> None:
    item = product(page(block))
    assert (item.price, item.currency) == (Decimal("39.9"), "EUR")


@pytest.mark.parametrize(
    "dirt",
    [
        "<!-- {} -->",
        "//<![CDATA[\n{}\n//]]>",
        "\ufeff{}",
        "{},".rstrip(","),
    ],
)
def test_dirt_around_the_json_is_read_past(dirt: str) -> None:
    assert product(page(dirt.replace("{}", orjson.dumps(LAMP).decode()))).name == "Desk lamp"


def test_a_trailing_comma_and_a_line_break_in_a_string_are_forgiven() -> None:
    text = orjson.dumps(LAMP).decode()[:-1] + ', "description": "two\nlines",}'
    assert product(page(text)).description == "two lines"


def test_a_broken_block_does_not_spoil_the_good_one() -> None:
    assert product(page("{broken", LAMP)).name == "Desk lamp"


def test_related_products_are_not_the_product() -> None:
    other = LAMP | {"name": "Other", "url": "https://shop.example/p/other"}
    assert product(page(LAMP | {"isRelatedTo": [other]})).name == "Desk lamp"
    listing = {"@type": "ItemList", "itemListElement": [other]}
    assert product(page(listing, LAMP)).name == "Desk lamp"


def test_of_several_products_the_one_of_this_url_counts() -> None:
    other = LAMP | {"name": "Other", "url": "/p/other"}
    assert product(page(other, LAMP | {"url": "/p/lamp"})).name == "Desk lamp"


def test_a_listing_is_no_product() -> None:
    other = LAMP | {"name": "Other"}
    assert isinstance(extract_product(page(LAMP, other), URL), NoProduct)


def test_opengraph_serves_where_there_is_no_json_ld() -> None:
    head = (
        '<meta property="og:type" content="product"><meta property="og:title" content="Mug &amp; cup">'
        '<meta property="product:price:amount" content="7,50">'
        "<meta content='EUR' property='product:price:currency'>"
        '<meta property="product:availability" content="out of stock">'
    )
    item = product(page(head=head))
    assert (item.name, item.price, item.currency) == ("Mug & cup", Decimal("7.5"), "EUR")
    assert (item.stock, item.method) == (Stock.OUT_OF_STOCK, Method.OPENGRAPH)


def test_a_plain_page_is_no_product() -> None:
    assert isinstance(extract_product(b"<html><h1>About us</h1></html>", URL), NoProduct)


def test_nothing_said_about_stock_is_unknown() -> None:
    silent = LAMP | {"offers": {"price": 1, "priceCurrency": "EUR"}}
    assert product(page(silent)).stock == Stock.UNKNOWN


def test_a_wrong_check_digit_is_no_gtin() -> None:
    assert product(page(LAMP | {"gtin13": "4006381333932"})).gtin == ""


def test_nul_and_lone_surrogates_do_not_reach_the_database() -> None:
    item = product(page(r'{"@type": "Product", "name": "a\u0000b\ud800c", "offers": {"price": 1}}'))
    assert item.name == "abc"


@given(st.binary(max_size=2000))
def test_it_never_raises_on_any_bytes(body: bytes) -> None:
    extract_product(b'<script type="application/ld+json">' + body + b"</script>", URL)
    extract_product(body, URL)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda c: (
            st.lists(c)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "@type",
                        "offers",
                        "price",
                        "name",
                        "brand",
                        "image",
                        "url",
                        "gtin",
                        "priceSpecification",
                    ]
                ),
                c,
            )
        ),
        max_leaves=12,
    )
)
def test_it_never_raises_on_any_json(value: object) -> None:
    extract_product(page({"@type": "Product", "name": "x", "offers": value, "brand": value}), URL)


def test_values_nested_beyond_reason_are_no_values() -> None:
    deep = "[" * 1020 + "]" * 1020
    text = f'{{"@type": "Product", "name": {deep}, "offers": {{"price": {deep}}}}}'
    assert isinstance(extract_product(page(text), URL), NoProduct)


def test_a_head_of_nothing_but_openings_costs_no_time() -> None:
    body = b"<meta " * 50_000
    assert isinstance(extract_product(body, URL), NoProduct)
