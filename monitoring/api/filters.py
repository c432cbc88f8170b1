from __future__ import annotations

from typing import Any

import django_filters as filters  # type: ignore[import-untyped]

from common.drf.filters import MomentFilter
from common.errors import Refused
from common.urls import normalize_url, parse_url, url_hash
from monitoring import finding
from monitoring.models import Change, FoundUrl, Product, StockStatus, Website

PRICE = {"min_value": 0, "max_digits": 14, "decimal_places": 4}


class WebsiteFilter(filters.FilterSet):  # type: ignore[misc]
    q = filters.CharFilter("name", "icontains", label="Part of the name.")

    class Meta:
        model = Website
        fields = ["status", "kind"]


class ProductFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("website_id")
    domain = filters.CharFilter(method="of_domain", label="The host of the website.")
    sku = filters.CharFilter()
    gtin = filters.CharFilter()
    mpn = filters.CharFilter()
    brand = filters.CharFilter("brand", "iexact")
    category = filters.CharFilter("category", "iexact")
    availability = filters.ChoiceFilter(
        field_name="current_stock_status", choices=StockStatus.choices
    )
    price_min = filters.NumberFilter("current_price", "gte", **PRICE)
    price_max = filters.NumberFilter("current_price", "lte", **PRICE)
    rating_min = filters.NumberFilter("rating", "gte", min_value=0, max_value=999)
    changed_after = MomentFilter("last_changed_at", "gte")
    delisted = filters.BooleanFilter("delisted_at", "isnull", exclude=True)
    q = filters.CharFilter(
        method="by_text",
        label="Words of name, brand and description; each may be the beginning of one.",
    )

    class Meta:
        model = Product
        fields = ["approval"]

    def by_text(self, rows: Any, name: str, value: str) -> Any:
        return finding.by_text(rows, value)

    def of_domain(self, rows: Any, name: str, value: str) -> Any:
        return finding.of_domain(rows, value)


class FoundUrlFilter(filters.FilterSet):  # type: ignore[misc]
    url = filters.CharFilter(method="of_url", label="Exactly this page, however it is spelt.")
    q = filters.CharFilter("url", "icontains", label="Part of the URL.")

    class Meta:
        model = FoundUrl
        fields = ["state", "source"]

    def of_url(self, rows: Any, _name: str, url: str) -> Any:
        try:
            digest = url_hash(normalize_url(parse_url(url, allow_local=True)))
        except Refused:
            return rows.none()
        return rows.filter(url_hash=digest)


class CandidateFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("website_id")
    approval = filters.ChoiceFilter(choices=Product.Approval.choices, label="Else pending.")
    score_min = filters.NumberFilter("discovery_score", "gte", min_value=0, max_value=1)
    duplicates = filters.BooleanFilter(
        "duplicate_of", "isnull", exclude=True, label="Only, or no, possible duplicates."
    )
    vanished = filters.BooleanFilter(
        "vanished_at", "isnull", exclude=True, label="Not seen by the last discovery."
    )
    q = filters.CharFilter("name", "icontains", label="Part of the name.")

    class Meta:
        model = Product
        fields: list[str] = []

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        given = {} if data is None else data.copy()
        given.setdefault("approval", Product.Approval.PENDING)
        super().__init__(given, *args, **kwargs)


class ChangeFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("product__website_id")
    product = filters.UUIDFilter("product_id")
    since = MomentFilter("occurred_at", "gte")
    until = MomentFilter("occurred_at", "lte")
    campaign = filters.UUIDFilter("campaign_id", label="The run whose campaign lists it.")

    class Meta:
        model = Change
        fields = ["kind", "status"]


class ProductChangeFilter(filters.FilterSet):  # type: ignore[misc]
    since = MomentFilter("occurred_at", "gte")

    class Meta:
        model = Change
        fields = ["kind", "status"]
