from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from extraction.items import Hints, Method, Stock
from extraction.visible import VisibleReading, read_visible
from extraction.visible_identity import is_gtin
from extraction.walks import Walk

MENU = "<header><nav><ul><li><a href='/a'>Shoes</a></li><li><a href='/b'>Hats</a></li></ul></nav></header>"
RELATED = """<section class="related-products"><h2>You may also like</h2><ul>
<li class="product-card"><a href="/1">Red hat<span class="price">€11.00</span></a></li>
<li class="product-card"><a href="/2">Blue hat<span class="price">€12.00</span></a></li>
<li class="product-card"><a href="/3">Green hat<span class="price">€13.00</span></a></li>
<li class="product-card"><a href="/4">Grey hat<span class="price">€14.00</span></a></li></ul></section>"""


def read(
    buy: str, *, rest: str = RELATED, url: str = "https://shop.example/wool-hat"
) -> VisibleReading:
    html = f"""<html lang="en"><head><title>Wool hat | Example shop</title></head><body>{MENU}
    <main class="product-detail"><h1>Wool hat</h1><div class="product-info">{buy}</div></main>{rest}
    <footer>Free shipping over €50</footer></body></html>"""
    return read_visible(Walk(LexborHTMLParser(html)), url=url, hints=Hints())


def price_of(buy: str, **options: str) -> Decimal | None:
    found = read(buy, **options).price
    return None if found is None else found.value


CART = "<button type='submit'>Add to cart</button>"


def test_the_price_beside_the_title_and_the_buy_button_is_the_price() -> None:
    seen = read(f"<span class='price'>€29.90</span>{CART}")
    assert seen.price is not None
    assert (seen.price.value, seen.price.source) == (Decimal("29.9"), Method.VISIBLE)
    assert seen.price.raw == "€29.90"
    assert "span.price" in seen.price.place
    assert seen.currency is not None
    assert seen.currency.value == "EUR"


def test_a_struck_price_is_the_list_price() -> None:
    seen = read(
        f"<div class='price-box'><del>€39.90</del> <ins class='price'>€29.90</ins></div>{CART}"
    )
    assert seen.price is not None
    assert seen.price.value == Decimal("29.9")
    assert seen.list_price is not None
    assert seen.list_price.value == Decimal("39.9")


@pytest.mark.parametrize(
    "markup",
    [
        "<span class='price'><span>€</span><span>29</span><sup>90</sup></span>",
        "<div class='price'>29<span class='cents'>,90</span> €</div>",
        "<div class='price'><b>29</b>.<i>90</i> <small>EUR</small></div>",
        "<p class='price'>€ 29,90 <small>incl. VAT</small></p>",
    ],
)
def test_a_price_split_over_elements_is_put_together(markup: str) -> None:
    assert price_of(markup + CART) == Decimal("29.9")


def test_instalments_savings_and_shipping_are_not_the_price() -> None:
    seen = read(
        "<span class='price'>€120.00</span><p class='installments'>or 3 x €40.00</p>"
        f"<p class='you-save'>You save €30.00</p><p class='shipping'>Shipping €4.90</p>{CART}"
    )
    assert seen.price is not None
    assert seen.price.value == Decimal("120")


def test_a_page_with_only_other_products_has_no_price() -> None:
    assert price_of("<p>Ask us for this one.</p>") is None


def test_a_page_without_texts_says_nothing() -> None:
    seen = read_visible(Walk(LexborHTMLParser("<html></html>")), url="", hints=Hints())
    assert seen.price is None
    assert seen.stock is None
    assert seen.name is None


def test_the_candidates_show_why_they_lost() -> None:
    seen = read(f"<span class='price'>€29.90</span>{CART}")
    reasons = {candidate.value: candidate.reason for candidate in seen.candidates}
    assert reasons[Decimal("29.90")] == "won"
    assert "far_related" in reasons[Decimal("11.00")] or "same_shape" in reasons[Decimal("11.00")]
    assert all(candidate.score is not None for candidate in seen.candidates)


@pytest.mark.parametrize(
    ("markup", "stock"),
    [
        ("<p class='stock'>In stock</p>", Stock.IN_STOCK),
        ("<p class='availability'>Auf Lager</p>", Stock.IN_STOCK),
        ("<p>Disponible</p>", Stock.IN_STOCK),
        ("<p class='stock'>Out of stock</p>", Stock.OUT_OF_STOCK),
        ("<p>Ausverkauft</p>", Stock.OUT_OF_STOCK),
        ("<p>Rupture de stock</p>", Stock.OUT_OF_STOCK),
        ("<p>Není skladem</p>", Stock.OUT_OF_STOCK),
        ("<p>Нет в наличии</p>", Stock.OUT_OF_STOCK),
        ("<p>売り切れ</p>", Stock.OUT_OF_STOCK),
        ("<p class='stock'>Pre-order</p>", Stock.PREORDER),
        (CART, Stock.IN_STOCK),
        ("<p>A fine hat.</p>", None),
        (f"{CART}<select><option>S</option><option>M - sold out</option></select>", Stock.IN_STOCK),
    ],
)
def test_stock_is_read_in_the_shops_words(markup: str, stock: Stock | None) -> None:
    seen = read(f"<span class='price'>€29.90</span>{markup}")
    assert (seen.stock.value if seen.stock else None) == stock


def test_sold_out_related_products_do_not_count() -> None:
    related = RELATED.replace("</a>", "<b>Sold out</b></a>")
    seen = read(f"<span class='price'>€29.90</span>{CART}", rest=related)
    assert seen.stock is not None
    assert seen.stock.value is Stock.IN_STOCK


def test_the_number_left_is_read() -> None:
    seen = read(f"<span class='price'>€29.90</span><p class='stock'>Only 3 left in stock</p>{CART}")
    assert seen.stock_quantity is not None
    assert seen.stock_quantity.value == 3


def test_name_article_number_and_gtin_are_read() -> None:
    seen = read("<p>SKU: WH-2201</p><table><tr><th>EAN</th><td>4006381333931</td></tr></table>")
    assert seen.name is not None
    assert seen.name.value == "Wool hat"
    assert seen.sku is not None
    assert seen.sku.value == "WH-2201"
    assert seen.gtin is not None
    assert seen.gtin.value == "4006381333931"


def test_a_gtin_with_a_wrong_check_digit_is_none() -> None:
    assert is_gtin("4006381333931")
    assert not is_gtin("4006381333932")
    assert not is_gtin("00000000")
    assert not is_gtin("٤٠٠٦٣٨١٣٣٣٩٣١")


def test_a_shared_sign_means_the_currency_of_the_country() -> None:
    seen = read(
        f"<span class='price'>$29.90</span>{CART}", url="https://shop.example.com.au/hat", rest=""
    )
    assert seen.currency is not None
    assert seen.currency.value == "AUD"


def test_deep_nesting_is_read_without_recursion() -> None:
    seen = read("<div>" * 3000 + "<span class='price'>€29.90</span>" + CART)
    assert seen.texts > 0


@given(st.text(alphabet="<>/=\"' divspanh1price€$0123456789.,\x00\ud800\n", max_size=300))
def test_no_page_makes_it_fail(html: str) -> None:
    body = html.encode("utf-8", "surrogatepass")
    read_visible(Walk(LexborHTMLParser(body)), url=html, hints=Hints(locale=html))
