from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import action as unfold_action
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    WARN,
    ReadOnly,
    badge,
    inside_link,
    outside_link,
    picture,
    short_url,
)
from common.errors import Refused
from monitoring import approval, charts, explaining, reparsing, series, websites
from monitoring.admin.debugger import Debugger
from monitoring.admin.reparsing import Reparsed, Road
from monitoring.admin.wording import STOCK_COLOURS, price_text
from monitoring.models import Candidate, Product

CHARTED = dt.timedelta(days=90)
APPROVAL_COLOURS = {"pending": WARN, "approved": GOOD, "rejected": BAD}


class ScoreFilter(admin.SimpleListFilter):
    """With "select all" this approves everything from a score on."""

    title = "score"
    parameter_name = "score_min"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(text, f"{text} or more") for text in ("0.95", "0.9", "0.8", "0.6")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        known = {value for value, _ in self.lookup_choices}
        wanted = self.value()
        return rows.filter(discovery_score__gte=float(wanted)) if wanted in known else rows


class ProductScreen(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """What products and the review queue have in common."""

    list_select_related = ["website"]
    search_fields = ["name", "sku", "gtin", "original_url"]
    show_full_result_count = False
    paginator = InfinitePaginator
    actions = ["approve", "reject"]
    actions_submit_line = ["approve_this", "reject_this"]
    fieldsets = [
        (None, {"fields": ["name", "address", "website", "verdict", "brand", "category"]}),
        ("Now", {"fields": ["price", "was", "stock", "range", "last_crawled_at"]}),
        (
            "Memory",
            {"fields": ["chart", "why", "last_changed_at", "delisted_at", "history", "changes"]},
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
        product = self.get_object(request, object_id) if request.method == "POST" else None
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

    @admin.display(description="URL")
    def address(self, product: Product) -> str:
        return outside_link(product.original_url)

    @admin.display(description="URL")
    def page(self, product: Product) -> str:
        return short_url(product.original_url)

    @admin.display(description="Seen", ordering="last_crawled_at")
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

    @badge("Approval", APPROVAL_COLOURS, ordering="approval")
    def verdict(self, product: Product) -> str:
        return product.get_approval_display()

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

    @admin.display(description="90 days")
    def chart(self, product: Product) -> str:
        now = timezone.now()
        since = now - CHARTED
        lines = [charts.Line(str(product), series.points(product.pk, since, now))]
        return picture(charts.draw(str(product), lines, since, now), alt="Price over 90 days")

    @admin.display(description="Latest verdict")
    def why(self, product: Product) -> str:
        found = explaining.explain(product)
        return f"{found.verdict}: {found.summary}"

    @admin.display(description="Changes")
    def changes(self, product: Product) -> str:
        url = reverse("admin:monitoring_change_changelist")
        return inside_link(f"{url}?product__id__exact={product.pk}", "All changes")


@admin.register(Product)
class ProductAdmin(Debugger, Reparsed, ProductScreen):
    reparse_road = Road(reparsing.compare_product, reparsing.reparse_product)
    list_display = [
        "__str__",
        "website",
        "price",
        "stock",
        "verdict",
        "seen",
    ]
    list_filter = ["approval", "current_stock_status", "website"]
    empty_text = "No product yet. Register a website: discovery finds its products."


@admin.register(Candidate)
class CandidateAdmin(ProductScreen):
    """Pending products, the most likely first."""

    list_display = [
        "__str__",
        "website",
        "price",
        "stock",
        "score",
        "reason",
        "extraction_method",
        "twin",
        "page",
    ]
    list_filter = [
        ScoreFilter,
        ("duplicate_of", admin.EmptyFieldListFilter),
        ("vanished_at", admin.EmptyFieldListFilter),
        "current_stock_status",
        "extraction_method",
        "website",
    ]
    list_select_related = ["website", "duplicate_of"]
    actions = ["approve", "reject", "ban"]
    ordering = ["-discovery_score", "-id"]
    empty_text = "Nothing waits for review. Discovery of a website fills this list."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(approval=Product.Approval.PENDING)

    def url_after(self, request: HttpRequest, product: Product) -> str:
        """On to the next one of the website, until its queue is empty."""
        waiting = self.get_queryset(request).filter(website_id=product.website_id)
        following = waiting.order_by(*self.ordering).values_list("pk", flat=True).first()
        if following is None:
            return reverse("admin:monitoring_candidate_changelist")
        return reverse("admin:monitoring_candidate_change", args=[following])

    @admin.action(description="Reject and ban their folders", permissions=["review"])
    def ban(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        ids = list(chosen.values_list("id", flat=True))
        try:
            count = websites.ban_folders_of(ids, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{count} rejected; their folders are not read again.")

    @admin.display(description="Why", ordering="discovery_reason")
    def reason(self, product: Product) -> str:
        return product.discovery_reason
