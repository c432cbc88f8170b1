from __future__ import annotations

import uuid
from typing import Any

import orjson
from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RangeDateTimeFilter, TextFilter
from unfold.paginator import InfinitePaginator

from common.console import ReadOnly, Titled, badge, block, inside_link
from monitoring.admin.wording import STOCK_COLOURS, percent_text, price_text
from monitoring.models import Product, ProductHistory


class ProductFilter(TextFilter):  # type: ignore[misc]
    title = "product id"
    parameter_name = "product"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given = (self.value() or "").strip()
        if not given:
            # The whole history is too much to sort; an index keeps what changed.
            return queryset.filter(Q(price_changed=True) | Q(stock_changed=True))
        try:
            return queryset.filter(product_id=uuid.UUID(given))
        except ValueError:
            return queryset.none()


@admin.register(ProductHistory)
class ProductHistoryAdmin(Titled, ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = [
        "crawl_timestamp",
        "product",
        "amount",
        "stock",
        "news",
        "percent",
    ]
    list_filter = [ProductFilter, ("crawl_timestamp", RangeDateTimeFilter)]
    list_filter_submit = True
    empty_text = "No price or stock has changed yet. Give a product's id to see all its checks."
    ordering = ["-crawl_timestamp"]
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = [
        "crawl_timestamp",
        "product",
        "amount",
        "list_price",
        "stock",
        "price_changed",
        "stock_changed",
        "percent",
        "variant_key",
        "crawl_job_id",
        "crawl_task_id",
        "page_hash",
        "parser_version",
        "raw",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProductHistory]:
        rows: QuerySet[ProductHistory] = super().get_queryset(request)
        name = Product.objects.filter(pk=OuterRef("product_id")).values("name")[:1]
        return rows.defer("raw_crawl_data").annotate(product_name=Subquery(name))

    def title_of(self, row: ProductHistory) -> str:
        name = getattr(row, "product_name", None) or row.product_id
        return f"{name}, {date_format(row.crawl_timestamp, 'DATETIME_FORMAT')}"

    @admin.display(description="Product")
    def product(self, row: ProductHistory) -> str:
        url = reverse("admin:monitoring_product_change", args=[row.product_id])
        return inside_link(url, getattr(row, "product_name", None) or str(row.product_id))

    @admin.display(description="Price", empty_value="—")
    def amount(self, row: ProductHistory) -> str | None:
        return price_text(row.price, row.currency)

    @badge("Stock", STOCK_COLOURS)
    def stock(self, row: ProductHistory) -> str:
        return row.get_stock_status_display()

    @admin.display(description="Changed", empty_value="—")
    def news(self, row: ProductHistory) -> str | None:
        changed = {"price": row.price_changed, "stock": row.stock_changed}
        return ", ".join(name for name, yes in changed.items() if yes) or None

    @admin.display(description="Price change", empty_value="—")
    def percent(self, row: ProductHistory) -> str | None:
        return percent_text(row.price_change_pct)

    @admin.display(description="Data", empty_value="As the check before")
    def raw(self, row: ProductHistory) -> str | None:
        if row.raw_crawl_data is None:
            return None
        pretty = orjson.dumps(row.raw_crawl_data, option=orjson.OPT_INDENT_2).decode()
        return block(pretty)
