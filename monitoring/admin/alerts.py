from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.admin import actor_of
from common.console import BAD, GOOD, WARN, ReadOnly, badge, do_each
from monitoring import comparing
from monitoring.models import AlertRule, ProductMatch

MATCH_COLOURS = {"proposed": WARN, "confirmed": GOOD, "rejected": BAD}


@admin.register(AlertRule)
class AlertRuleAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = [
        "__str__",
        "website",
        "product",
        "kind",
        "value",
        "direction",
        "rearm_minutes",
        "confirm",
        "is_active",
    ]
    list_filter = ["kind", "is_active", "website"]
    list_select_related = ["website", "product"]
    search_fields = ["name", "website__name"]
    empty_text = "No alert rule yet. Clients make them: POST /api/v1/websites/{id}/alert-rules."
    show_full_result_count = False


@admin.register(ProductMatch)
class ProductMatchAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Products that look alike: an operator says whether they are the same."""

    list_display = ["left", "right", "score", "reason", "verdict", "created_at"]
    list_filter = ["status"]
    list_select_related = ["left", "right"]
    actions = ["confirm", "reject"]
    empty_text = "Nothing proposed. POST /api/v1/products/compare with propose finds look-alikes."
    show_full_result_count = False

    def has_review_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("monitoring.change_productmatch")

    @admin.action(description="Confirm: the same product", permissions=["review"])
    def confirm(self, request: HttpRequest, chosen: QuerySet[ProductMatch]) -> None:
        self._decide(request, chosen, ProductMatch.Status.CONFIRMED)

    @admin.action(description="Reject: different products", permissions=["review"])
    def reject(self, request: HttpRequest, chosen: QuerySet[ProductMatch]) -> None:
        self._decide(request, chosen, ProductMatch.Status.REJECTED)

    def _decide(self, request: HttpRequest, chosen: QuerySet[ProductMatch], status: str) -> None:
        job = partial(comparing.decide, status=status, actor=actor_of(request))
        do_each(request, chosen, job, status)

    @badge("Status", MATCH_COLOURS, ordering="status")
    def verdict(self, match: ProductMatch) -> str:
        return match.get_status_display()
