from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.timesince import timesince
from unfold.admin import ModelAdmin
from unfold.decorators import action as unfold_action

from accounts.admin import actor_of
from accounts.audit import Actor
from common.console import (
    BAD,
    GOOD,
    WARN,
    Buttons,
    Titled,
    add_refusal,
    badge,
    block,
    do_each,
)
from common.console_csv import CsvList
from common.errors import Refused
from crawling import domains
from crawling.admin_plots import Strip
from crawling.admin_proxies import ProxiesOfDomain
from crawling.admin_reading import DomainPlaces
from crawling.models import Domain
from crawling.refreshing import refresh_robots

MOST_AT_ONCE = 10
BREAKER_COLOURS = {"closed": GOOD, "half_open": WARN, "open": BAD}


class DomainForm(forms.ModelForm):  # type: ignore[type-arg]
    actor: Actor

    class Meta:
        model = Domain
        fields = list(domains.FIELDS)

    def _post_clean(self) -> None:
        """Saving is the affair of the job; what it refuses shows at the field."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        changes: Any = {name: self.cleaned_data[name] for name in self.changed_data}
        try:
            self.instance = domains.update_domain(self.instance, actor=self.actor, **changes)
        except Refused as refused:
            add_refusal(self, refused)


@admin.register(Domain)
class DomainAdmin(CsvList, Strip, Buttons, DomainPlaces, Titled, ModelAdmin):  # type: ignore[misc]
    csv_columns = [
        "host",
        "is_active",
        "is_blocked",
        "blocked_reason",
        "parser_name",
        "crawl_delay_seconds",
        "max_concurrent_requests",
        "respect_robots",
        "robots_status",
        "robots_fetched_at",
        "breaker_state",
        "success_count",
        "failure_count",
        "response_ms_ewma",
    ]
    empty_text = "No domain yet. Each comes with the first website on it."
    form = DomainForm
    list_display = [
        "host",
        "state",
        "strip",
        "success",
        "speed",
        "circuit",
        "robots",
        "delay",
        "at_once",
        "parser_name",
    ]
    list_filter = ["is_active", "is_blocked", "breaker_state", "respect_robots"]
    search_fields = ["host"]
    actions = ["block", "unblock", "refresh_robots", "reset_circuit"]
    actions_submit_line = ["block_this", "unblock_this", "refresh_this", "reset_this"]
    show_full_result_count = False
    inlines = [ProxiesOfDomain]
    readonly_fields = [
        "host",
        "base_url",
        "circuit",
        "success",
        "speed",
        "latency",
        "breaker_failures",
        "breaker_opened_at",
        "robots_status",
        "robots_fetched_at",
        "robots_crawl_delay",
        "rules",
        "next_allowed_at",
        "throttle_seconds",
        "leased_by",
        "leased_until",
        "places",
    ]
    fieldsets = [
        (None, {"fields": ["host", "base_url", "is_active"]}),
        (
            "Health",
            {
                "fields": [
                    ("circuit", "breaker_failures", "breaker_opened_at"),
                    "success",
                    "latency",
                ]
            },
        ),
        (
            "Pace",
            {"fields": ["crawl_delay_seconds", "rate_limit_rps", "max_concurrent_requests"]},
        ),
        ("Manners", {"fields": ["respect_robots", "user_agent", "proxy_rotation"]}),
        ("Reading", {"fields": ["parser_name", "places"]}),
        (
            "Left alone",
            {"fields": ["maintenance_start", "maintenance_end", "maintenance_timezone"]},
        ),
        ("Block", {"fields": ["is_blocked", "blocked_reason"]}),
        ("Circuit", {"fields": ["breaker_threshold", "breaker_timeout_s"]}),
        ("Now", {"fields": ["next_allowed_at", "throttle_seconds", "leased_by", "leased_until"]}),
        (
            "Robots",
            {
                "fields": [
                    "robots_status",
                    "robots_fetched_at",
                    "robots_crawl_delay",
                    "rules",
                ]
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Domain]:
        rows: QuerySet[Domain] = super().get_queryset(request)
        return rows.defer("robots_body", "learned")

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what would change something."""
        domain = self.get_object(request, str(object_id))
        if domain is None:
            return []
        useless = {"unblock_this" if not domain.is_blocked else "block_this"}
        if domain.breaker_state == Domain.Breaker.CLOSED and not domain.breaker_failures:
            useless.add("reset_this")
        found = super().get_actions_submit_line(request, object_id)
        return [button for button in found if button.method.__name__ not in useless]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        return type(form.__name__, (form,), {"actor": actor_of(request)})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """The form has done it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description="Block", permissions=["change"])
    def block(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda domain: domains.block(domain, actor=actor), "blocked")

    @admin.action(description="Unblock", permissions=["change"])
    def unblock(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda domain: domains.unblock(domain, actor=actor), "unblocked")

    @admin.action(description="Refresh robots.txt", permissions=["change"])
    def refresh_robots(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        # One that answers slowly takes fifteen seconds of this page.
        do_each(
            request,
            chosen[:MOST_AT_ONCE],
            lambda domain: refresh_robots(domain, actor=actor),
            "asked, or due at the next visit",
        )

    @admin.action(description="Reset circuit", permissions=["change"])
    def reset_circuit(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda domain: domains.reset_circuit(domain, actor=actor), "reset")

    @unfold_action(description="Block", permissions=["change"], icon="block")  # type: ignore[untyped-decorator]
    def block_this(self, request: HttpRequest, domain: Domain) -> None:
        self.block(request, [domain])

    @unfold_action(description="Unblock", permissions=["change"], icon="check")  # type: ignore[untyped-decorator]
    def unblock_this(self, request: HttpRequest, domain: Domain) -> None:
        self.unblock(request, [domain])

    @unfold_action(description="Refresh robots.txt", permissions=["change"], icon="smart_toy")  # type: ignore[untyped-decorator]
    def refresh_this(self, request: HttpRequest, domain: Domain) -> None:
        self.refresh_robots(request, [domain])

    @unfold_action(description="Reset circuit", permissions=["change"], icon="electric_bolt")  # type: ignore[untyped-decorator]
    def reset_this(self, request: HttpRequest, domain: Domain) -> None:
        self.reset_circuit(request, [domain])

    @badge("State", {"Active": GOOD, "Off": WARN, "Blocked": BAD}, ordering="is_blocked")
    def state(self, domain: Domain) -> str:
        if domain.is_blocked:
            return "Blocked"
        return "Active" if domain.is_active else "Off"

    @admin.display(description="Delay", ordering="crawl_delay_seconds")
    def delay(self, domain: Domain) -> str:
        return f"{domain.crawl_delay_seconds:g}\u00a0s"

    @admin.display(description="At once", ordering="max_concurrent_requests")
    def at_once(self, domain: Domain) -> int:
        return domain.max_concurrent_requests

    @admin.display(description="Robots", ordering="robots_fetched_at")
    def robots(self, domain: Domain) -> str:
        if not domain.respect_robots:
            return "Ignored"
        if domain.robots_fetched_at is None:
            return "Unreachable" if domain.robots_failures else "Not read yet"
        return f"{timesince(domain.robots_fetched_at)} old"

    @admin.display(description="Rules", empty_value="—")
    def rules(self, domain: Domain) -> str | None:
        return block(domain.robots_body) if domain.robots_body else None

    @badge("Circuit", BREAKER_COLOURS, ordering="breaker_state")
    def circuit(self, domain: Domain) -> str:
        return domain.get_breaker_state_display()

    @admin.display(description="Success", empty_value="—")
    def success(self, domain: Domain) -> str | None:
        total = domain.success_count + domain.failure_count
        return f"{100 * domain.success_count / total:.1f}\u00a0% of\u00a0{total}" if total else None

    @admin.display(description="Answers in", ordering="response_ms_ewma", empty_value="—")
    def speed(self, domain: Domain) -> str | None:
        mean = domain.response_ms_ewma
        return None if mean is None else f"{mean:.0f}\u00a0ms"
