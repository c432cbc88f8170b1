"""What the cases' evaluator calls: one page in, a plain dict out."""

from __future__ import annotations

from typing import Any

from extraction import numbers
from extraction.items import NoProduct, Stock
from extraction.product import extract_product

WORDS = {
    Stock.IN_STOCK: "InStock",
    Stock.OUT_OF_STOCK: "OutOfStock",
    Stock.LIMITED_AVAILABILITY: "LimitedAvailability",
    Stock.PREORDER: "PreOrder",
    Stock.BACKORDER: "BackOrder",
    Stock.DISCONTINUED: "Discontinued",
}


def extract(body: bytes, url: str | None, charset: str | None) -> dict[str, Any]:
    content_type = f"text/html; charset={charset}" if charset else ""
    item = extract_product(body, url or "", content_type=content_type)
    if isinstance(item, NoProduct):
        return {"is_product": False}
    said = {
        "name": item.name,
        "price": item.price,
        "currency": item.currency,
        "availability": WORDS.get(item.stock),
        "sku": item.sku,
        "gtin": item.gtin,
    }
    return {"is_product": True} | {k: v for k, v in said.items() if v not in (None, "")}


def parse_price(
    text: str, currency: str | None, decimal: str | None, locale: str | None
) -> tuple[Any, str | None]:
    price = numbers.parse_price(
        text, currency_hint=currency, decimal_hint=decimal, locale_hint=locale
    )
    return price.amount, price.currency or None
