"""The page's product among the data of its scripts: found by its name or its number."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from extraction.identity import GTIN_KEYS, read_gtin
from extraction.items import Method, Stock, Variant
from extraction.naming import covered
from extraction.numbers import parse_amount
from extraction.readings import Reading
from extraction.stock import read_quantity, read_stock
from extraction.texts import Node, dicts, text_of

MOST_NODES = 40_000
DEPTH = 24
NAMES = ("name", "title", "productName", "displayName", "product_name", "item_name", "productTitle")
PRICES = (
    "salePrice", "sale_price", "specialPrice", "special_price", "currentPrice", "current_price",
    "finalPrice", "final_price", "discountedPrice", "promoPrice", "priceNow", "price", "priceV2",
    "productPrice", "product_price", "sellingPrice", "price_cents", "priceInCents", "display_price",
)  # fmt: skip
NAMED, PRICED = frozenset(NAMES), frozenset(PRICES)
LISTED = (
    "compare_at_price", "compareAtPrice", "compareAtPriceV2", "listPrice", "list_price",
    "originalPrice", "original_price", "regularPrice", "regular_price", "wasPrice", "oldPrice",
    "old_price", "rrp", "msrp", "strikePrice", "display_regular_price", "basePrice",
)  # fmt: skip
STOCKS = (
    "availability", "availabilityStatus", "stockStatus", "stock_status", "inStock", "in_stock",
    "is_in_stock", "isInStock", "available", "availableForSale", "isAvailable", "purchasable",
)  # fmt: skip
QUANTITIES = ("stockQuantity", "stock_quantity", "quantityAvailable", "inventory_quantity", "stock")
CURRENCIES = ("currency", "currencyCode", "currency_code", "priceCurrency", "currencyIso")
SKUS = ("sku", "productCode", "itemNumber", "partNumber", "item_id", "productId", "product_id")
AMOUNTS = (
    "value",
    "amount",
    "centAmount",
    "current",
    "now",
    "sale",
    "final",
    "price",
    "min",
    "raw",
)
IDS = (
    "id",
    "productId",
    "product_id",
    "sku",
    "handle",
    "slug",
    "asin",
    "itemId",
    "item_id",
    "code",
)
# Branches of the data that hold what the page is not about.
ASIDE = (
    "relat", "recommend", "similar", "upsell", "crosssell", "cross_sell", "bought", "recent",
    "carousel", "also", "accessor", "bundle", "cart", "wishlist", "navigation", "menu", "sponsor",
)  # fmt: skip


def read_embedded(found: Iterator[Any], names: list[str], page_id: str) -> Reading | None:
    """The richest object that names this page's product and gives it a price."""
    best: tuple[float, Reading] | None = None
    for value in found:
        for node in _candidates(value):
            score = _match(node, names, page_id)
            reading = _read(node) if score > 0 else None
            if reading is None or reading.value("price") is None:
                continue
            score += 0.2 * ("currency" in reading.fields) + 0.1 * len(reading.variants[:1])
            if best is None or score > best[0] + 0.05:
                best = score, reading
    return best[1] if best else None


def _candidates(value: Any) -> Iterator[Node]:
    """Objects with a name and a price, outside the branches about other products."""
    stack: list[tuple[Any, int]] = [(value, DEPTH)]
    left = MOST_NODES
    while stack and left > 0:
        node, depth = stack.pop()
        left -= 1
        if isinstance(node, dict):
            if _has(node, NAMED) and (_has(node, PRICED) or dicts(node.get("variants"))):
                yield node
            parts = [v for k, v in node.items() if isinstance(v, dict | list) and not _aside(k)]
        else:
            parts = [v for v in node if isinstance(v, dict | list)]
        if depth:
            stack.extend((part, depth - 1) for part in reversed(parts))


def _has(node: Node, keys: frozenset[str]) -> bool:
    return not keys.isdisjoint(node)


@lru_cache(maxsize=10_000)
def _aside(key: str) -> bool:
    key = key.lower().replace("-", "")
    return any(word in key for word in ASIDE)


def _match(node: Node, names: list[str], page_id: str) -> float:
    """How surely an object is the page's own: by number, else by both names covering each other."""
    name = next((text_of(node[key]) for key in NAMES if isinstance(node.get(key), str)), "")
    both = [min(covered(name, other), covered(other, name)) for other in names if other]
    score = max(both, default=0.0)
    numbered = len(page_id) >= 4 and any(text_of(node.get(k)) == page_id for k in IDS)
    if numbered:
        return 1.0 + score
    return score if score >= 0.75 else 0.0


def _read(node: Node) -> Reading:
    reading = Reading(Method.EMBEDDED)
    cents = _in_cents(node)
    reading.put("name", next((text_of(node[k], 500) for k in NAMES if node.get(k)), ""))
    price, currency = _money(node, PRICES, cents=cents)
    reading.variants = _variants(node, cents=cents)
    if price is None and reading.variants:
        price = min((v.price for v in reading.variants if v.price), default=None)
    reading.put("price", price or None, str(price))
    reading.put("currency", currency or _first_text(node, CURRENCIES), currency)
    listed, _ = _money(node, LISTED, cents=cents)
    reading.put("list_price", listed if price and listed and listed > price else None)
    _put_stock(reading, node)
    reading.put("sku", _first_text(node, SKUS))
    reading.put("gtin", next((g for k in GTIN_KEYS if (g := read_gtin(text_of(node.get(k))))), ""))
    reading.put("brand", _first_text(node, ("brand", "vendor", "manufacturer", "item_brand")))
    return reading


def _in_cents(node: Node) -> bool:
    """Shopify writes whole cents in the product objects of its themes."""
    keys = ("price_min", "compare_at_price_min", "price_varies")
    return any(isinstance(node.get(key), int) for key in keys) and "handle" in node


def _money(node: Node, keys: tuple[str, ...], *, cents: bool) -> tuple[Decimal | None, str]:
    for key in keys:
        value, currency, small = node.get(key), "", cents or "cents" in key.lower()
        if isinstance(value, dict):
            inner = next((k for k in AMOUNTS if value.get(k) is not None), "")
            currency = _first_text(value, CURRENCIES)
            small = small or inner == "centAmount"
            value = value.get(inner)
        amount = parse_amount(value) if not isinstance(value, dict | list) else None
        if amount is not None:
            return (amount / 100 if small else amount), currency
    return None, ""


def _put_stock(reading: Reading, node: Node) -> None:
    for key in STOCKS:
        if isinstance(node.get(key), bool | str):
            stock, raw = read_stock(node[key])
            if stock is not Stock.UNKNOWN:
                reading.put("stock", stock, raw)
                break
    reading.put("stock_quantity", next((q for k in QUANTITIES if (q := _quantity(node, k))), None))


def _quantity(node: Node, key: str) -> int | None:
    value = node.get(key)
    return read_quantity(value) if isinstance(value, int | str) else None


def _first_text(node: Node, keys: tuple[str, ...]) -> str:
    return next((text for key in keys if (text := text_of(node.get(key), 255))), "")


def _variants(node: Node, *, cents: bool) -> tuple[Variant, ...]:
    axes = (
        [text_of(axis) for axis in node.get("options") or ()] if _is_list(node, "options") else []
    )
    rows = (_variant(row, axes, cents=cents) for row in dicts(node.get("variants"))[:500])
    return tuple(row for row in rows if row.key)


def _is_list(node: Node, key: str) -> bool:
    return isinstance(node.get(key), list)


def _variant(row: Node, axes: list[str], *, cents: bool) -> Variant:
    reading = Reading(Method.EMBEDDED)
    _put_stock(reading, row)
    price, currency = _money(row, PRICES, cents=cents)
    listed, _ = _money(row, LISTED, cents=cents)
    sku = text_of(row.get("sku"), 255)
    return Variant(
        key=text_of(row.get("id"), 255) or sku,
        options=_options(row, axes),
        price=price,
        currency=currency,
        stock=reading.value("stock") or Stock.UNKNOWN,
        sku=sku,
        gtin=next((g for k in GTIN_KEYS if (g := read_gtin(text_of(row.get(k))))), ""),
        list_price=listed if price and listed and listed > price else None,
    )


def _options(row: Node, axes: list[str]) -> tuple[tuple[str, str], ...]:
    chosen = dicts(row.get("selectedOptions"))
    if chosen:
        found = [(text_of(o.get("name"), 100), text_of(o.get("value"), 255)) for o in chosen]
    else:
        values = [text_of(row.get(f"option{n}"), 255) for n in (1, 2, 3)]
        names = [*axes, "option1", "option2", "option3"][:3]
        found = list(zip(names, values, strict=False))
    return tuple((axis, value) for axis, value in found if value and value != "Default Title")
