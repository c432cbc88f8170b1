from __future__ import annotations

from typing import Any

import django_filters as filters  # type: ignore[import-untyped]

from monitoring.models import Change, Product, StockStatus, Website

PRICE = {"min_value": 0, "max_digits": 14, "decimal_places": 4}


class WebsiteFilter(filters.FilterSet):  # type: ignore[misc]
    q = filters.CharFilter("name", "icontains", label="Part of the name.")

    class Meta:
        model = Website
        fields = ["status", "kind"]


class ProductFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("website_id")
    sku = filters.CharFilter()
    gtin = filters.CharFilter()
    brand = filters.CharFilter("brand", "iexact")
    availability = filters.ChoiceFilter(
        field_name="current_stock_status", choices=StockStatus.choices
    )
    price_min = filters.NumberFilter("current_price", "gte", **PRICE)
    price_max = filters.NumberFilter("current_price", "lte", **PRICE)
    changed_after = filters.IsoDateTimeFilter("last_changed_at", "gte")
    q = filters.CharFilter("name", "icontains", label="Part of the name.")

    class Meta:
        model = Product
        fields = ["approval"]


class CandidateFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("website_id")
    approval = filters.ChoiceFilter(choices=Product.Approval.choices, label="Else pending.")
    score_min = filters.NumberFilter("discovery_score", "gte", min_value=0, max_value=1)
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
    since = filters.IsoDateTimeFilter("occurred_at", "gte")

    class Meta:
        model = Change
        fields = ["kind", "status"]


class ProductChangeFilter(filters.FilterSet):  # type: ignore[misc]
    since = filters.IsoDateTimeFilter("occurred_at", "gte")

    class Meta:
        model = Change
        fields = ["kind", "status"]
