from __future__ import annotations

from typing import Any

from selectolax.lexbor import LexborHTMLParser

from extraction.items import Stock, Variant
from extraction.lenient import parse
from extraction.numbers import parse_amount
from extraction.sites.rules import Parser, Rule
from extraction.texts import Node, dicts, text_of


def _variants(tree: LexborHTMLParser) -> tuple[Variant, ...]:
    """The rows the variations form carries in its attribute."""
    form = tree.css_first("form.variations_form[data-product_variations]")
    text = (form.attributes.get("data-product_variations") or "") if form else ""
    return tuple(_row(entry) for entry in dicts(parse(text.encode("utf-8", "replace")))[:500])


def _row(entry: Node) -> Variant:
    price = parse_amount(entry.get("display_price"))
    listed = parse_amount(entry.get("display_regular_price"))
    return Variant(
        key=text_of(entry.get("variation_id")) or text_of(entry.get("sku")),
        options=_options(entry.get("attributes")),
        price=price,
        stock=Stock.IN_STOCK if entry.get("is_in_stock") is True else Stock.OUT_OF_STOCK,
        sku=text_of(entry.get("sku"), 255),
        list_price=listed if listed and price and listed > price else None,
    )


def _options(attributes: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(attributes, dict):
        return ()
    pairs = ((str(key), text_of(value, 255)) for key, value in attributes.items())
    names = ((key.removeprefix("attribute_").removeprefix("pa_"), value) for key, value in pairs)
    return tuple((name[:100], value) for name, value in names if value)


WOOCOMMERCE = Parser(
    "woocommerce",
    "1",
    "WooCommerce: the summary's price, its struck-out price, the variations form.",
    rules=(
        Rule("name", "h1.product_title"),
        Rule("price", ".summary > .price ins .amount, .summary > div > .price ins .amount"),
        Rule("price", "p.price > .amount, .summary p.price > .woocommerce-Price-amount"),
        Rule("list_price", ".summary p.price del .amount"),
        Rule("stock", ".summary .stock.out-of-stock", means="OutOfStock"),
        Rule("stock", ".summary .stock.available-on-backorder", means="BackOrder"),
        Rule("stock", ".summary .stock.in-stock", means="InStock"),
        Rule("stock_quantity", ".summary .stock.in-stock", pattern=r"^(\d+)\b"),
        Rule("sku", ".product_meta .sku"),
    ),
    marks=(b"wp-content/plugins/woocommerce", b"woocommerce-product-gallery"),
    variants=_variants,
)
