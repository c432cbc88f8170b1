from __future__ import annotations

import tracemalloc
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.crowds import uncrowded
from extraction.items import Hints, LearnedPlace, Method, NoProduct, ProductItem
from extraction.learned import check_places, learn_places, merge_places, read_learned
from extraction.links import page_links
from extraction.pages import Page
from extraction.product import extract_fully, extract_product
from extraction.scripted import looks_script_built

URL = "https://shop.example/p/lamp-12345"
LD = b'<script type="application/ld+json">%s</script>'
PIECES = st.sampled_from(
    [
        b"<div itemscope itemtype='http://schema.org/Product'>", b"<b itemprop=price>", b"9,99",
        b"</div>", b"<del>", b"<h1>Lamp", b"<script>window.__S__={\"name\":\"Lamp\",\"price\":", b"{", b"}",
        b"<script type=application/ld+json>", b"</script>", b'{"@type":"Product","name":"Lamp"', b",",
        b'"offers":{"price":1e400}', b"<!--", b"-->", b"\x00", b"\xed\xa0\x80", b"\xff\xfe", b"<button>Add to cart",
        "١٢٣٫٤٥ ر.س".encode(), b"<meta property=og:type content=product>", b"&#0;", b"<table><form>",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_any_heap_of_markup_is_read_the_same_both_ways(body: bytes) -> None:
    assert extract_product(body, URL) == extract_fully(body, URL)


@given(st.binary(max_size=400), st.text(max_size=80), st.text(max_size=40))
def test_any_url_and_any_header_are_borne(body: bytes, url: str, header: str) -> None:
    extract_product(b"<h1>Lamp</h1><b class=price>9.99</b>" + body, url, content_type=header)


# Opening, one token again and again, so often.
SLOW = {
    "deep": (b"", b"<div>", 400_000),
    "deep and closed": (b"", b"<b></b><b>", 200_000),
    "deep json": (b'<script type="application/ld+json">', b'{"a":[', 50_000),
    "many blocks": (b"", LD % b'{"@type":"Product","name":"x"}', 20_000),
    "broken blocks": (b"", LD % b'{"@type":"Product" "name":"a",}', 60_000),
    "comments": (b"", b"<!--", 300_000),
    "nul": (b"", b"\x00", 2_000_000),
    "js": (b"<h1>x</h1><script>", b"var product={price:1,", 50_000),
    "quotes": (b"<h1>x</h1><script>dataLayer.push({'price':", b"'", 500_000),
    "open options": (b"<select>", b"<option>a", 120_000),
    "closed options": (b"<select>", b"<option>a</option>", 60_000),
}


@pytest.mark.parametrize("shape", SLOW.values(), ids=SLOW)
def test_a_page_made_to_be_slow_is_not(shape: tuple[bytes, bytes, int]) -> None:
    opening, token, count = shape
    assert seconds(b"<h1>Lamp</h1>" + opening + token * count) < 5


def test_links_of_a_page_made_to_be_slow_are_found_in_time() -> None:
    before = process_time()
    body = b"<a href='/p/1'>x</a><select>" + b"<option>a" * 120_000
    assert page_links(body, URL) == ["https://shop.example/p/1"]
    looks_script_built(body)
    assert process_time() - before < 5


@pytest.mark.parametrize("attribute", [b"a%d=1", b"a%d", b'a%d=">"', b"a%d='<i>'"])
def test_a_tag_of_endless_attributes_is_not_slow(attribute: bytes) -> None:
    body = b"<h1>Lamp</h1><p " + b" ".join(attribute % place for place in range(80_000)) + b">x"
    assert seconds(body) < 5


def test_a_large_attribute_is_kept_whole() -> None:
    body = b"<p data-json='" + b"x=1 y <i> " * 20_000 + b"'>9,99</p>"
    assert uncrowded(body) == body


def test_a_tag_beyond_reason_keeps_what_follows_it() -> None:
    many = b" ".join(b'a%d=">"' % place for place in range(20_000))
    page = shop_page("12.00", data=False)
    item = extract_product(b"<p " + many + b">x</p>" + page, URL)
    assert isinstance(item, ProductItem)
    assert item.price == 12


def seconds(body: bytes) -> float:
    """The processor time a page takes, whatever else the machine does."""
    before = process_time()
    extract_product(body, URL)
    return process_time() - before


def test_open_elements_by_the_thousand_take_little_memory() -> None:
    body = b"<h1>Lamp</h1>" + b"<i>" * 14_000 + b"9,99 EUR" + b"</i>" * 2_000
    tracemalloc.start()
    try:
        extract_product(body, URL)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 150_000_000


def shop_page(price: str, *, data: bool = True) -> bytes:
    ld = LD % (
        b'{"@type":"Product","name":"Lamp","offers":{"price":"%s","priceCurrency":"EUR"}}'
        % price.encode()
    )
    shown = f'<h1>Lamp</h1><div class="box"><span class="cost">{price} €</span></div>'
    return (ld if data else b"") + shown.encode() + b"<button>Add to cart</button>"


def learned(*prices: str) -> tuple[LearnedPlace, ...]:
    places: tuple[LearnedPlace, ...] = ()
    for price in prices:
        item = extract_product(shop_page(price), URL)
        assert isinstance(item, ProductItem)
        places = merge_places(places, learn_places(Page(shop_page(price), URL, Hints()).tree, item))
    return places


def test_a_place_that_agreed_on_three_pages_speaks_when_the_data_vanishes() -> None:
    places = learned("10.50", "20.50", "30.50")
    tree = Page(shop_page("44.00", data=False), URL, Hints()).tree
    assert read_learned(tree, places, "EUR").value("price") == 44
    assert read_learned(tree, learned("10.50"), "EUR").value("price") is None


def test_a_place_that_disagrees_loses_its_voice() -> None:
    places = learned("10.50", "20.50", "30.50")
    item = extract_product(shop_page("12.00"), URL)
    assert isinstance(item, ProductItem)
    other = Page(shop_page("99.00"), URL, Hints()).tree
    places = merge_places(places, check_places(other, places, item))
    tree = Page(shop_page("44.00", data=False), URL, Hints()).tree
    assert read_learned(tree, places, "EUR").value("price") is None


def test_rules_of_the_domain_are_read_before_all_else() -> None:
    hints = Hints(options={"rules": [{"name": "price", "selector": ".mine"}, {"bad": 1}]})
    body = shop_page("10.00") + b'<p class="mine">77,00 EUR</p>'
    item = extract_product(body, URL, hints=hints)
    assert isinstance(item, ProductItem)
    assert item.price == 77
    assert item.fields["price"].source is Method.SITE


def test_a_page_that_only_names_a_product_id_is_none() -> None:
    assert isinstance(extract_product(b"<h1>Contact</h1><p>Call us.</p>", URL), NoProduct)
