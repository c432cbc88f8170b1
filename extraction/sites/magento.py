from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from extraction.items import Variant
from extraction.lenient import parse
from extraction.numbers import parse_amount
from extraction.sites.rules import Parser, Rule
from extraction.texts import Node, dicts, text_of

DEPTH = 8


def _variants(tree: LexborHTMLParser) -> tuple[Variant, ...]:
    """The rows of the configurable product's settings."""
    for script in tree.css('script[type="text/x-magento-init"]')[:100]:
        text = script.text(deep=True)
        if "optionPrices" not in text:
            continue
        config = next(_configs(parse(text.encode("utf-8", "replace")), DEPTH), None)
        if config is not None:
            return _rows(config)
    return ()


def _configs(value: Any, depth: int) -> Iterator[Node]:
    if not isinstance(value, dict) or depth == 0:
        return
    if "optionPrices" in value and "attributes" in value:
        yield value
    for part in value.values():
        yield from _configs(part, depth - 1)


def _rows(config: Node) -> tuple[Variant, ...]:
    options = _options(config.get("attributes"))
    prices = config.get("optionPrices")
    rows = prices.items() if isinstance(prices, dict) else ()
    return tuple(
        Variant(
            key=str(number)[:255],
            options=tuple(options.get(str(number), ())),
            price=_amount(entry, "finalPrice"),
            list_price=_listed(entry),
        )
        for number, entry in list(rows)[:500]
        if isinstance(entry, dict)
    )


def _amount(entry: Node, key: str) -> Any:
    part = entry.get(key)
    return parse_amount(part.get("amount")) if isinstance(part, dict) else None


def _listed(entry: Node) -> Any:
    old, final = _amount(entry, "oldPrice"), _amount(entry, "finalPrice")
    return old if old and final and old > final else None


def _options(attributes: Any) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for axis in dicts(list(attributes.values()) if isinstance(attributes, dict) else attributes):
        name = text_of(axis.get("code") or axis.get("label"), 100)
        for option in dicts(axis.get("options")):
            products = option.get("products")
            for number in products if isinstance(products, list) else ():
                found.setdefault(str(number), []).append((name, text_of(option.get("label"), 255)))
    return found


MAGENTO = Parser(
    "magento",
    "1",
    "Magento and Adobe Commerce: final and old price, the stock line, configurable products.",
    rules=(
        Rule("name", "h1.page-title"),
        Rule("price", '.product-info-main [data-price-type="finalPrice"]', "data-price-amount"),
        Rule("price", ".product-info-main .special-price .price"),
        Rule("list_price", '.product-info-main [data-price-type="oldPrice"]', "data-price-amount"),
        Rule("stock", ".product-info-main .stock.unavailable", means="OutOfStock"),
        Rule("stock", ".product-info-main .stock.available", means="InStock"),
        Rule("sku", '.product-info-main [itemprop="sku"], .product.attribute.sku .value'),
    ),
    marks=(b"text/x-magento-init", b"Magento_Catalog"),
    variants=_variants,
)
