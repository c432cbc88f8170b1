from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.decorators import action as unfold_action
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    Detailed,
    ReadOnly,
    badge,
    inside_link,
    outside_link,
    short_url,
)
from common.console_csv import CsvList
from common.errors import Refused
from monitoring import approval, explaining, finding, product_control, reparsing, trends
from monitoring.admin.debugger import Debugger
from monitoring.admin.importing import ImportPage
from monitoring.admin.pictures import delta, price_spark
from monitoring.admin.product_page import ProductPage
from monitoring.admin.reparsing import Reparsed, Road
from monitoring.admin.wording import STOCK_COLOURS, price_text
from monitoring.models import Product
from monitoring.trends import Trend

APPROVAL_COLOURS = {"pending": WARN, "approved": GOOD, "rejected": BAD, "paused": INFO}


class ProductScreen(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """What products and the review queue have in common."""

    list_select_related = ["website"]
    search_fields = ["name"]
    search_help_text = "Words, a SKU, a GTIN or an address."
    show_full_result_count = False
    list_per_page = 50
    paginator = InfinitePaginator
    actions = ["approve", "reject"]
    actions_submit_line = ["approve_this", "reject_this"]
    fieldsets = [
        (None, {"fields": ["name", "address", "website", "verdict", "brand", "category"]}),
        ("Now", {"fields": ["price", "was", "stock", "range", "last_crawled_at"]}),
        (
            "Memory",
            {"fields": ["why", "last_changed_at", "delisted_at", "history", "changes"]},
        ),
        ("Reading", {"fields": ["extraction_method", "parser_version", "debugger", "again"]}),
        ("Identity", {"fields": ["sku", "gtin", "mpn", "normalized_url"]}),
        (
            "Discovery",
            {
                "fields": [
                    "discovery_score",
                    "discovery_reason",
                    "twin",
                    "discovered_at",
                    "vanished_at",
                    "created_at",
                ]
            },
        ),
        ("Text", {"fields": ["description", "image_url"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("attributes")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """As the API finds them: substrings of a hundred thousand names take too long."""
        if not search_term.strip():
            return queryset, False
        return finding.by_anything(queryset, search_term), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Once for a look at a page, whoever asks for it; afresh where something is done."""
        if request.method != "GET":
            return super().get_object(request, object_id, from_field)
        if not hasattr(request, "shown_product"):
            found = super().get_object(request, object_id, from_field)
            request.shown_product = found  # type: ignore[attr-defined]
        return request.shown_product  # type: ignore[attr-defined]

    def has_review_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("monitoring.change_product")

    @admin.action(description="Approve", permissions=["review"])
    def approve(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._decide(request, chosen, approval.approve, "approved")

    @admin.action(description="Reject", permissions=["review"])
    def reject(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._decide(request, chosen, approval.reject, "rejected")

    @unfold_action(description="Approve", permissions=["review"], icon="check")  # type: ignore[untyped-decorator]
    def approve_this(self, request: HttpRequest, product: Product) -> None:
        self._decide(request, Product.objects.filter(pk=product.pk), approval.approve, "approved")

    @unfold_action(description="Reject", permissions=["review"], icon="close")  # type: ignore[untyped-decorator]
    def reject_this(self, request: HttpRequest, product: Product) -> None:
        self._decide(request, Product.objects.filter(pk=product.pk), approval.reject, "rejected")

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what would change something."""
        product = self.get_object(request, str(object_id))
        useless = {"approved": "approve_this", "rejected": "reject_this"}
        hidden = useless.get(product.approval) if product else None
        found = super().get_actions_submit_line(request, object_id)
        return [button for button in found if not button.action_name.endswith(str(hidden))]

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """The buttons of a page that is otherwise not edited."""
        asked = object_id if request.method == "POST" else None
        product = self.get_object(request, asked) if asked else None
        if product is not None:
            for button in self.get_actions_submit_line(request, object_id):
                if button.action_name in request.POST:
                    button.method(request, product)
                    return HttpResponseRedirect(self.url_after(request, product))
        return super().changeform_view(request, object_id, *args, **kwargs)

    def url_after(self, request: HttpRequest, product: Product) -> str:
        return request.get_full_path()

    def _decide(
        self,
        request: HttpRequest,
        chosen: QuerySet[Product],
        job: Callable[..., list[Product]],
        done: str,
    ) -> None:
        ids = list(chosen.values_list("id", flat=True))
        try:
            changed = job(ids, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{len(changed)} of {len(ids)} {done}.")

    @admin.display(description="")
    def tile(self, product: Product) -> str:
        """In place of a picture: those of shops lie on other hosts, which no page may ask."""
        name = str(product).removeprefix("https://").removeprefix("http://")
        first = next((letter for letter in name if letter.isalnum()), "·")
        return format_html('<span class="tile" aria-hidden="true">{}</span>', first.upper())

    @admin.display(description="URL")
    def address(self, product: Product) -> str:
        return outside_link(product.original_url)

    @admin.display(description="URL")
    def page(self, product: Product) -> str:
        return short_url(product.original_url)

    @admin.display(description="Last check", ordering="last_crawled_at")
    def seen(self, product: Product) -> Any:
        return product.last_crawled_at

    @admin.display(description="Price", ordering="current_price", empty_value="—")
    def price(self, product: Product) -> str | None:
        return price_text(product.current_price, product.current_currency)

    @admin.display(description="List price", empty_value="—")
    def was(self, product: Product) -> str | None:
        return price_text(product.list_price, product.current_currency)

    @admin.display(description="Lowest to highest", empty_value="—")
    def range(self, product: Product) -> str | None:
        low = price_text(product.lowest_price, product.current_currency)
        high = price_text(product.highest_price, product.current_currency)
        return f"{low} to {high}" if low and high else None

    @badge("Stock", STOCK_COLOURS, ordering="current_stock_status")
    def stock(self, product: Product) -> str:
        return product.get_current_stock_status_display()

    @badge("Watched", APPROVAL_COLOURS, ordering="approval")
    def verdict(self, product: Product) -> str:
        watched = product.approval == Product.Approval.APPROVED
        return product.get_approval_display() if product.is_active or not watched else "Paused"

    @admin.display(description="Score", ordering="discovery_score")
    def score(self, product: Product) -> str:
        return f"{product.discovery_score:.2f}"

    @admin.display(description="Possible duplicate", empty_value="—")
    def twin(self, product: Product) -> str | None:
        if product.duplicate_of is None:
            return None
        url = reverse("admin:monitoring_product_change", args=[product.duplicate_of_id])
        return inside_link(url, f"{product.duplicate_reason}: {product.duplicate_of}")

    @admin.display(description="History")
    def history(self, product: Product) -> str:
        url = reverse("admin:monitoring_producthistory_changelist")
        return inside_link(f"{url}?product={product.pk}", "All checks")

    @admin.display(description="What was read")
    def debugger(self, product: Product) -> str:
        url = reverse("admin:monitoring_product_debugger")
        return inside_link(f"{url}?product={product.pk}", "Open in the extraction debugger")

    @admin.display(description="Stored pages")
    def again(self, product: Product) -> str:
        url = reverse("admin:monitoring_product_reparse", args=[product.pk])
        return inside_link(url, "Read again with the parser of today")

    @admin.display(description="Latest verdict")
    def why(self, product: Product) -> str:
        """Asked once: the theme reads a field several times while it draws it."""
        if not hasattr(product, "explained"):
            product.explained = explaining.explain(product)  # type: ignore[attr-defined]
        found = product.explained  # type: ignore[attr-defined]
        return f"{found.verdict}: {found.summary}"

    @admin.display(description="Changes")
    def changes(self, product: Product) -> str:
        url = reverse("admin:monitoring_change_changelist")
        return inside_link(f"{url}?product__id__exact={product.pk}", "All changes")


PRODUCT_CSV = [
    "id",
    "name",
    "original_url",
    "website__name",
    "brand",
    "sku",
    "gtin",
    "current_price",
    "list_price",
    "current_currency",
    "current_stock_status",
    "lowest_price",
    "highest_price",
    "approval",
    "is_active",
    "delisted_at",
    "last_crawled_at",
    "last_changed_at",
]


@admin.register(Product)
class ProductAdmin(ProductPage, Debugger, Reparsed, CsvList, ImportPage, Detailed, ProductScreen):
    reparse_road = Road(reparsing.compare_product, reparsing.reparse_product)
    list_display = [
        "tile",
        "named",
        "price",
        "day",
        "month",
        "spark",
        "stock",
        "verdict",
        "seen",
    ]
    list_display_links = ["tile", "named"]
    list_filter = ["approval", "current_stock_status", "is_active", "website"]
    actions = ["approve", "reject", "crawl_now", "pause", "resume"]
    csv_columns = PRODUCT_CSV
    empty_text = "No product yet. Register a website: discovery finds its products."

    def add_details(self, rows: list[Any]) -> None:
        found = trends.trends_of(rows)
        for product in rows:
            product.trend = found[product.pk]

    @admin.action(description="Crawl now", permissions=["review"])
    def crawl_now(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._act(request, chosen, "crawl", "being crawled")

    @admin.action(description="Pause", permissions=["review"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._act(request, chosen, "pause", "paused")

    @admin.action(description="Resume", permissions=["review"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._act(request, chosen, "resume", "resumed")

    def _act(self, request: HttpRequest, chosen: QuerySet[Product], job: str, done: str) -> None:
        ids = product_control.ids_of(chosen)
        outcomes = product_control.act_on_many(
            job, ids, Product.objects.all(), actor=actor_of(request), dry_run=False
        )
        count = sum(outcome.result == "done" for outcome in outcomes)
        messages.success(request, f"{count} of {len(ids)} {done}.")
        for detail in sorted({one.detail for one in outcomes if one.result == "refused"}):
            messages.error(request, detail)

    @admin.display(description="Product", ordering="name")
    def named(self, product: Product) -> str:
        cell = '<span class="name">{}<span class="below">{}</span></span>'
        return format_html(cell, str(product), product.website.name)

    @admin.display(description="Δ 24 h", empty_value="—")
    def day(self, product: Product) -> str | None:
        return delta(trend_of(product).day_pct)

    @admin.display(description="Δ 30 d", empty_value="—")
    def month(self, product: Product) -> str | None:
        return delta(trend_of(product).month_pct)

    @admin.display(description="30 days")
    def spark(self, product: Product) -> str:
        return price_spark(trend_of(product))


def trend_of(product: Product) -> Trend:
    return getattr(product, "trend", Trend())
