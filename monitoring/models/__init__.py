from __future__ import annotations

from monitoring.models.alerts import AlertRule
from monitoring.models.exports import Export
from monitoring.models.found import FoundUrl, ParserHealth
from monitoring.models.matches import ProductMatch
from monitoring.models.products import (
    TEXT_FIELDS,
    Candidate,
    Change,
    ChangeQuerySet,
    Product,
    ProductHistory,
    ProductQuerySet,
    StockStatus,
)
from monitoring.models.series import ProductImage, ProductStatistics, Variant
from monitoring.models.websites import CURRENCY, LOCALE, Website, WebsiteQuerySet

__all__ = [
    "CURRENCY",
    "LOCALE",
    "TEXT_FIELDS",
    "AlertRule",
    "Candidate",
    "Change",
    "ChangeQuerySet",
    "Export",
    "FoundUrl",
    "ParserHealth",
    "Product",
    "ProductHistory",
    "ProductImage",
    "ProductMatch",
    "ProductQuerySet",
    "ProductStatistics",
    "StockStatus",
    "Variant",
    "Website",
    "WebsiteQuerySet",
]
