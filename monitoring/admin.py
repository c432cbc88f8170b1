from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from django import forms
from django.contrib import admin, messages
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RangeDateTimeFilter, TextFilter
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.admin import actor_of
from accounts.audit import Actor
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    ReadOnly,
    add_refusal,
    badge,
    block,
    do_each,
    inside_link,
    outside_link,
    words,
)
from common.errors import Refused
from monitoring import approval, schedules, websites
from monitoring.changes import plain
from monitoring.models import Candidate, Change, Product, ProductHistory, Website
from monitoring.registration import Registration, register_website
from notifications import endpoints

WEBSITE_COLOURS = {"pending_approval": WARN, "active": GOOD, "paused": INFO, "failed": BAD}
RUN_COLOURS = {"success": GOOD, "partial_success": WARN, "failed": BAD}
APPROVAL_COLOURS = {"pending": WARN, "approved": GOOD, "rejected": BAD}
STOCK_COLOURS = {
    "in_stock": GOOD,
    "limited_availability": WARN,
    "preorder": INFO,
    "backorder": INFO,
    "out_of_stock": BAD,
    "discontinued": BAD,
}
CHANGE_COLOURS = {"confirmed": GOOD, "quarantined": WARN}


def _price(amount: Any, currency: str) -> str | None:
    return None if amount is None else f"{plain(amount)}\u00a0{currency}".strip()


class WebsiteForm(forms.ModelForm):  # type: ignore[type-arg]
    """Saving is the affair of the job modules; what they refuse shows at the field."""

    actor: Actor
    seed_urls = forms.CharField(
        label="Seed URLs",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Where discovery starts, one per line; else the base URL.",
    )
    webhook_endpoint_url = forms.CharField(
        label="Webhook URL",
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Hears about this website only, signed with the client's secret.",
    )

    class Meta:
        model = Website
        fields = [
            "client",
            "base_url",
            "seed_urls",
            "name",
            "kind",
            "crawl_frequency_minutes",
            "price_change_threshold_pct",
            "price_change_threshold_abs",
            "retention_days",
            "webhook_enabled",
        ]
        labels = {
            "base_url": "Base URL",
            "crawl_frequency_minutes": "Crawl frequency",
            "price_change_threshold_pct": "Threshold in percent",
            "price_change_threshold_abs": "Threshold in money",
        }
        help_texts = {
            "price_change_threshold_pct": "Tell about price changes of at least so many percent,",
            "price_change_threshold_abs": "or of at least this amount.",
            "retention_days": "30 to 365.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            urls = endpoints.website_endpoint_urls([self.instance.pk])
            self.initial["webhook_endpoint_url"] = urls.get(self.instance.pk, "")
        elif "name" in self.fields:
            self.fields["name"].required = False
            self.fields["name"].help_text = "Else the host."

    def clean_seed_urls(self) -> list[str]:
        return str(self.cleaned_data["seed_urls"]).split()

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.instance = self._register() if self.instance._state.adding else self._update()
        except Refused as refused:
            add_refusal(self, refused)

    def _register(self) -> Website:
        given = dict(self.cleaned_data)
        client = given.pop("client")
        return register_website(client, Registration(**given), actor=self.actor)

    def _update(self) -> Website:
        changes: Any = {name: self.cleaned_data[name] for name in self.changed_data}
        return websites.update_website(self.instance, actor=self.actor, **changes)


@admin.register(Website)
class WebsiteAdmin(ModelAdmin):  # type: ignore[misc]
    form = WebsiteForm
    list_display = [
        "name",
        "client",
        "state",
        "schedule",
        "next_run",
        "last_result",
        "watched",
        "failures",
    ]
    list_filter = ["status", "kind", "client"]
    list_select_related = ["client", "periodic_task__crontab", "periodic_task__interval"]
    search_fields = ["name", "base_url", "client__name"]
    autocomplete_fields = ["client"]
    actions = ["crawl_now", "discover_now", "pause", "resume"]
    actions_submit_line = ["crawl_this", "discover_this"]
    readonly_fields = [
        "state",
        "schedule_link",
        "next_run",
        "last_result",
        "last_successful_crawl_at",
        "failures",
        "products",
    ]
    settings = [
        (
            "Rules",
            {
                "fields": [
                    "crawl_frequency_minutes",
                    "price_change_threshold_pct",
                    "price_change_threshold_abs",
                    "retention_days",
                ]
            },
        ),
        ("Webhook", {"fields": ["webhook_endpoint_url", "webhook_enabled"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            asked = ["client", "base_url", "seed_urls", "name", "kind"]
            return [(None, {"fields": asked}), *self.settings]
        shown = ["name", "client", "base_url", "seeds", "kind", "state", "products"]
        runs = [
            "schedule_link",
            "next_run",
            "last_result",
            "last_successful_crawl_at",
            "failures",
        ]
        return [(None, {"fields": shown}), ("Runs", {"fields": runs}), *self.settings]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fixed = ["client", "base_url", "seeds", "kind"] if obj else []
        return [*self.readonly_fields, *fixed]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        return type(form.__name__, (form,), {"actor": actor_of(request)})

    def save_model(self, request: HttpRequest, obj: Website, form: Any, change: Any) -> None:
        """The form has saved it; what is left is the pressed button, if any."""
        for button in self.get_actions_submit_line(request, obj.pk):
            if button.action_name in request.POST:
                button.method(request, obj)

    def delete_model(self, request: HttpRequest, obj: Website) -> None:
        websites.delete_website(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Website]) -> None:
        for website in queryset:
            websites.delete_website(website, actor=actor_of(request))

    def get_deleted_objects(
        self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """A summary: Django's own tree would load every product and change."""
        count = Product.objects.filter(website__in=[row.pk for row in objs]).count()
        counts = {"websites": len(objs), "products": count}
        return [str(row) for row in objs], counts, set(), []

    @admin.action(description="Crawl now", permissions=["change"])
    def crawl_now(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.crawl_now, "being crawled")

    @admin.action(description="Discover products", permissions=["change"])
    def discover_now(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.discover_now, "being discovered")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.pause, "paused")

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.resume, "resumed")

    @admin.action(description="Save and crawl now", permissions=["change"])
    def crawl_this(self, request: HttpRequest, website: Website) -> None:
        self._each(request, [website], websites.crawl_now, "being crawled")

    @admin.action(description="Save and discover", permissions=["change"])
    def discover_this(self, request: HttpRequest, website: Website) -> None:
        self._each(request, [website], websites.discover_now, "being discovered")

    def _each(self, request: HttpRequest, rows: Any, job: Callable[..., object], done: str) -> None:
        actor = actor_of(request)
        do_each(request, rows, lambda website: job(website, actor=actor), done)

    @badge("Status", WEBSITE_COLOURS, ordering="status")
    def state(self, website: Website) -> str:
        return website.get_status_display()

    @admin.display(description="Schedule")
    def schedule(self, website: Website) -> str:
        return schedules.describe(website)

    @admin.display(description="Schedule")
    def schedule_link(self, website: Website) -> str:
        task = website.periodic_task
        if task is None:
            return schedules.describe(website)
        url = reverse("admin:django_celery_beat_periodictask_change", args=[task.pk])
        return inside_link(url, schedules.describe(website))

    @admin.display(description="Next run", empty_value="—")
    def next_run(self, website: Website) -> dt.datetime | None:
        return schedules.next_run_at(website)

    @badge("Last result", RUN_COLOURS, ordering="last_crawl_status")
    def last_result(self, website: Website) -> str:
        return words(website.last_crawl_status) or "None yet"

    @admin.display(description="Products", ordering="approved_product_count")
    def watched(self, website: Website) -> int:
        return website.approved_product_count

    @admin.display(description="Failures", ordering="consecutive_failures")
    def failures(self, website: Website) -> int:
        return website.consecutive_failures

    @admin.display(description="Seed URLs")
    def seeds(self, website: Website) -> str:
        return "\n".join(website.seed_urls)

    @admin.display(description="Products")
    def products(self, website: Website) -> str:
        url = reverse("admin:monitoring_product_changelist")
        text = f"{website.approved_product_count} watched"
        return inside_link(f"{url}?website__id__exact={website.pk}", text)


class ProductScreen(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """What products and the review queue have in common."""

    list_select_related = ["website"]
    search_fields = ["name", "sku", "gtin", "original_url"]
    show_full_result_count = False
    paginator = InfinitePaginator
    actions = ["approve", "reject"]
    fieldsets = [
        (None, {"fields": ["name", "address", "website", "verdict", "brand", "category"]}),
        ("Now", {"fields": ["price", "was", "stock", "range", "last_crawled_at"]}),
        ("Memory", {"fields": ["last_changed_at", "delisted_at", "history", "changes"]}),
        ("Identity", {"fields": ["sku", "gtin", "mpn", "normalized_url"]}),
        (
            "Discovery",
            {"fields": ["discovery_score", "discovery_reason", "extraction_method", "created_at"]},
        ),
        ("Text", {"fields": ["description", "image_url"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("attributes")

    def has_review_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("monitoring.change_product")

    @admin.action(description="Approve", permissions=["review"])
    def approve(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._decide(request, chosen, approval.approve, "approved")

    @admin.action(description="Reject", permissions=["review"])
    def reject(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        self._decide(request, chosen, approval.reject, "rejected")

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

    @admin.display(description="Price", ordering="current_price", empty_value="—")
    def price(self, product: Product) -> str | None:
        return _price(product.current_price, product.current_currency)

    @admin.display(description="List price", empty_value="—")
    def was(self, product: Product) -> str | None:
        return _price(product.list_price, product.current_currency)

    @admin.display(description="Lowest to highest", empty_value="—")
    def range(self, product: Product) -> str | None:
        low = _price(product.lowest_price, product.current_currency)
        high = _price(product.highest_price, product.current_currency)
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

    @admin.display(description="History")
    def history(self, product: Product) -> str:
        url = reverse("admin:monitoring_producthistory_changelist")
        return inside_link(f"{url}?product={product.pk}", "All checks")

    @admin.display(description="Changes")
    def changes(self, product: Product) -> str:
        url = reverse("admin:monitoring_change_changelist")
        return inside_link(f"{url}?product__id__exact={product.pk}", "All changes")


@admin.register(Product)
class ProductAdmin(ProductScreen):
    list_display = [
        "__str__",
        "website",
        "price",
        "stock",
        "verdict",
        "score",
        "discovery_reason",
        "last_crawled_at",
    ]
    list_filter = ["approval", "current_stock_status", "website"]


@admin.register(Candidate)
class CandidateAdmin(ProductScreen):
    """Pending products, the most likely first."""

    list_display = [
        "__str__",
        "website",
        "price",
        "stock",
        "score",
        "discovery_reason",
        "extraction_method",
        "address",
    ]
    list_filter = ["current_stock_status", "extraction_method", "website"]
    ordering = ["-discovery_score", "-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(approval=Product.Approval.PENDING)


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
class ProductHistoryAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
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

    @admin.display(description="Product")
    def product(self, row: ProductHistory) -> str:
        url = reverse("admin:monitoring_product_change", args=[row.product_id])
        return inside_link(url, getattr(row, "product_name", None) or str(row.product_id))

    @admin.display(description="Price", empty_value="—")
    def amount(self, row: ProductHistory) -> str | None:
        return _price(row.price, row.currency)

    @badge("Stock", STOCK_COLOURS)
    def stock(self, row: ProductHistory) -> str:
        return row.get_stock_status_display()

    @admin.display(description="Changed", empty_value="—")
    def news(self, row: ProductHistory) -> str | None:
        changed = {"price": row.price_changed, "stock": row.stock_changed}
        return ", ".join(name for name, yes in changed.items() if yes) or None

    @admin.display(description="Price change", empty_value="—")
    def percent(self, row: ProductHistory) -> str | None:
        return None if row.price_change_pct is None else f"{row.price_change_pct:+.2f}\u00a0%"

    @admin.display(description="Data", empty_value="As the check before")
    def raw(self, row: ProductHistory) -> str | None:
        if row.raw_crawl_data is None:
            return None
        pretty = orjson.dumps(row.raw_crawl_data, option=orjson.OPT_INDENT_2).decode()
        return block(pretty)


@admin.register(Change)
class ChangeAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = [
        "occurred_at",
        "product",
        "kind",
        "difference",
        "percent",
        "rule",
        "verdict",
    ]
    list_filter = ["kind", "status", ("occurred_at", RangeDateTimeFilter)]
    list_filter_submit = True
    list_select_related = ["product"]
    search_fields = ["=id", "=product__id"]
    search_help_text = "The id of a change or of a product."
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = [
        "occurred_at",
        "product",
        "kind",
        "difference",
        "percent",
        "rule",
        "verdict",
        "history_id",
        "page_hash",
    ]

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        asked = lookup == "product__id__exact"
        return asked or bool(super().lookup_allowed(lookup, value, request))

    @admin.display(description="Old → new")
    def difference(self, change: Change) -> str:
        return f"{change.old or '—'} → {change.new or '—'} {change.currency}".strip()

    @admin.display(description="%", ordering="pct", empty_value="—")
    def percent(self, change: Change) -> str | None:
        return None if change.pct is None else f"{change.pct:+.2f}\u00a0%"

    @badge("Status", CHANGE_COLOURS, ordering="status")
    def verdict(self, change: Change) -> str:
        return change.get_status_display()
