from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import (
    GOOD,
    WARN,
    Detailed,
    Pictured,
    ReadOnly,
    badge,
    do_each,
    inside_link,
)
from common.console_csv import CsvList
from common.plots import WIDE
from monitoring import product_control, told
from monitoring.admin.pictures import changes_per_day
from monitoring.admin.wording import percent_text
from monitoring.models import Change
from monitoring.told import Told

CHANGE_COLOURS = {"confirmed": GOOD, "quarantined": WARN}


@admin.register(Change)
class ChangeAdmin(CsvList, Pictured, Detailed, ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = [
        "occurred_at",
        "product",
        "kind",
        "difference",
        "percent",
        "rule",
        "event",
        "delivered",
        "verdict",
    ]
    list_filter = ["kind", "status", ("occurred_at", RangeDateTimeFilter)]
    list_filter_submit = True
    list_select_related = ["product"]
    search_fields = ["=id", "=product__id"]
    search_help_text = "The id of a change or of a product."
    actions = ["replay", "dismiss"]
    list_per_page = 50
    empty_text = "No change yet. Approved products are compared at every scheduled crawl."
    show_full_result_count = False
    paginator = InfinitePaginator
    csv_columns = [
        "id",
        "occurred_at",
        "product_id",
        "product__name",
        "product__original_url",
        "kind",
        "old",
        "new",
        "currency",
        "pct",
        "rule",
        "status",
    ]
    fields = [
        "occurred_at",
        "product",
        "kind",
        "difference",
        "percent",
        "rule",
        "event",
        "delivered",
        "verdict",
        "note",
        "history_id",
        "page_hash",
    ]

    def has_review_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("monitoring.change_change")

    @admin.action(description="Dismiss", permissions=["review"])
    def dismiss(self, request: HttpRequest, chosen: QuerySet[Change]) -> None:
        job = partial(product_control.dismiss, actor=actor_of(request))
        do_each(request, chosen, job, "dismissed")

    @admin.action(description="Replay the event", permissions=["review"])
    def replay(self, request: HttpRequest, chosen: QuerySet[Change]) -> None:
        do_each(request, chosen, partial(told.replay, actor=actor_of(request)), "sent again")

    def plots(self, request: HttpRequest) -> list[str]:
        return [changes_per_day(WIDE)]

    def add_details(self, rows: list[Any]) -> None:
        found = told.events_of(rows)
        for change in rows:
            change.told = found.get(change.pk)

    @admin.display(description="Event", empty_value="—")
    def event(self, change: Change) -> str | None:
        if change.campaign_id is not None:
            return "in a campaign"
        news = _told_of(change)
        if news is None:
            return None
        url = reverse("admin:notifications_event_change", args=[news.event_id])
        return inside_link(url, news.type.removeprefix("product."))

    @admin.display(description="Delivered", empty_value="—")
    def delivered(self, change: Change) -> str | None:
        news = _told_of(change)
        if news is None or not news.deliveries:
            return None
        tone = "good" if news.delivered == news.deliveries else "warn"
        text = f"{news.delivered}\u00a0of\u00a0{news.deliveries}"
        return format_html('<span class="plot-{}">{}</span>', tone, text)

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        asked = lookup == "product__id__exact"
        return asked or bool(super().lookup_allowed(lookup, value, request))

    @admin.display(description="Old → new")
    def difference(self, change: Change) -> str:
        return f"{change.old or '—'} → {change.new or '—'} {change.currency}".strip()

    @admin.display(description="%", ordering="pct", empty_value="—")
    def percent(self, change: Change) -> str | None:
        return percent_text(change.pct)

    @badge("Status", CHANGE_COLOURS, ordering="status")
    def verdict(self, change: Change) -> str:
        return change.get_status_display()


def _told_of(change: Change) -> Told | None:
    """Known on lists; a page of one change asks for itself."""
    if not hasattr(change, "told"):
        change.told = told.events_of([change]).get(change.pk)  # type: ignore[attr-defined]
    found: Told | None = change.told  # type: ignore[attr-defined]
    return found
