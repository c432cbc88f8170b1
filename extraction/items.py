"""What a page can mean: a product with the origin of each value, or a reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

PARSER_VERSION = "3"


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
    """Where a value was read, the most trusted first."""

    SITE = "site-parser"
    JSON_LD = "json-ld"
    MICRODATA = "microdata"
    RDFA = "rdfa"
    EMBEDDED = "embedded-json"
    OPENGRAPH = "opengraph"
    LEARNED = "learned-selector"
    VISIBLE = "heuristics"
    URL = "url"


class PageKind(StrEnum):
    """Why a page shows no product."""

    NO_PRODUCT = "no_product"
    CATEGORY = "category"
    ARTICLE = "article"
    SOFT_404 = "soft_404"
    BOT_WALL = "bot_wall"
    CONSENT = "consent"
    SCRIPT_ONLY = "script_only"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Field:
    """One value and how it came about."""

    value: Any
    source: Method
    raw: str = ""
    confidence: float = 1.0
    # A CSS place or a path in the data, for the debugger and for learning.
    place: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A candidate that was not taken, and why."""

    name: str
    value: Any
    source: Method
    raw: str = ""
    reason: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    key: str
    options: tuple[tuple[str, str], ...] = ()
    price: Decimal | None = None
    currency: str = ""
    stock: Stock = Stock.UNKNOWN
    sku: str = ""
    gtin: str = ""
    list_price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LearnedPlace:
    """A DOM place that agreed with the structured data of a domain's pages."""

    name: str
    selector: str
    attribute: str = ""
    agreed: int = 1
    disagreed: int = 0


@dataclass(frozen=True, slots=True)
class Hints:
    """What the caller knows of the site; each may be empty."""

    currency: str = ""
    locale: str = ""
    parser_name: str = "generic"
    options: Mapping[str, Any] = field(default_factory=dict)
    learned: tuple[LearnedPlace, ...] = ()


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
    stock_quantity: int | None = None
    unit_price: Decimal | None = None
    unit: str = ""
    # "From" prices and ranges: the price is the lowest of several.
    is_price_range: bool = False
    sku: str = ""
    gtin: str = ""
    mpn: str = ""
    brand: str = ""
    category: str = ""
    breadcrumb: tuple[str, ...] = ()
    description: str = ""
    image_url: str = ""
    images: tuple[str, ...] = ()
    canonical_url: str = ""
    extracted_product_id: str = ""
    rating: Decimal | None = None
    review_count: int | None = None
    variants: tuple[Variant, ...] = ()
    parser: str = "generic"
    # The texts the values were read from.
    raw: dict[str, str] = field(default_factory=dict)
    # Provenance: each value with its source, raw text and confidence.
    fields: dict[str, Field] = field(default_factory=dict)
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class NoProduct:
    reason: str
    kind: PageKind = PageKind.NO_PRODUCT
    lost: tuple[Lost, ...] = ()
