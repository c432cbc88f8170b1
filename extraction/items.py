"""What a page can mean: a product, or a reason why it is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

PARSER_VERSION = "1"


class Stock(StrEnum):
    IN_STOCK = "in_stock"
    OUT_OF_STOCK = "out_of_stock"
    LIMITED_AVAILABILITY = "limited_availability"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    DISCONTINUED = "discontinued"
    # Nothing is said: not the same as sold out.
    UNKNOWN = "unknown"


class Method(StrEnum):
    JSON_LD = "json-ld"
    OPENGRAPH = "opengraph"


@dataclass(frozen=True, slots=True)
class ProductItem:
    name: str
    method: Method
    confidence: float
    reason: str
    price: Decimal | None = None
    list_price: Decimal | None = None
    currency: str = ""
    stock: Stock = Stock.UNKNOWN
    sku: str = ""
    gtin: str = ""
    mpn: str = ""
    brand: str = ""
    category: str = ""
    description: str = ""
    image_url: str = ""
    canonical_url: str = ""
    # The texts the values were read from.
    raw: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoProduct:
    reason: str
