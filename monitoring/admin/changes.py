from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import GOOD, WARN, ReadOnly, badge, do_each
from monitoring import product_control
from monitoring.admin.wording import percent_text
from monitoring.models import Change

CHANGE_COLOURS = {"confirmed": GOOD, "quarantined": WARN}


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
    actions = ["dismiss"]
    empty_text = "No change yet. Approved products are compared at every scheduled crawl."
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
