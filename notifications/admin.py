from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

import orjson
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action as unfold_action
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common import plots
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    Buttons,
    Pictured,
    ReadOnly,
    Titled,
    badge,
    block,
    do_each,
    inside_link,
    moment,
    short_url,
    without_secrets,
)
from common.console_csv import CsvList
from common.console_search import FoundById
from common.plots import Series
from notifications import health, redelivery
from notifications.admin_endpoints import WebhookEndpointAdmin
from notifications.attempts import sent_headers
from notifications.catalogue import TYPES
from notifications.models import Delivery, DeliveryAttempt, Event

__all__ = ["WebhookEndpointAdmin"]

DELIVERY_COLOURS = {
    "pending": INFO,
    "retrying": WARN,
    "success": GOOD,
    "failed": BAD,
    "exhausted": BAD,
}
HOUR = dt.timedelta(hours=1)
HOURS = 24
RESULTS = {
    "Accepted": ("good", ("success",)),
    "On the way": ("info", ("pending",)),
    "Tried again": ("warn", ("retrying",)),
    "Given up": ("bad", ("failed", "exhausted")),
}


class TypeFilter(admin.SimpleListFilter):
    """The types there are, not the values of a million rows."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted(TYPES)]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(type=self.value()) if self.value() else rows


@admin.register(Event)
class EventAdmin(CsvList, FoundById, ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No event yet. Discoveries, approvals and changes make them."
    csv_columns = [
        "id",
        "type",
        "sequence",
        "client__name",
        "object_id",
        "request_id",
        "created_at",
    ]
    list_display = ["type", "sequence", "client", "created_at"]
    list_filter = [TypeFilter]
    list_select_related = ["client"]
    id_fields = ["id", "object_id"]
    search_help_text = "The id of an event or of what it is about."
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = ["public_id", "type", "client", "sequence", "created_at", "request_id", "content"]
    readonly_fields = ["public_id", "content"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        rows = without_secrets(super().get_queryset(request), "client")
        match = request.resolver_match
        on_list = match is not None and (match.url_name or "").endswith("_changelist")
        return rows.defer("body") if on_list else rows

    @admin.display(description="Body")
    def content(self, event: Event) -> str:
        pretty = orjson.dumps(orjson.loads(event.body), option=orjson.OPT_INDENT_2).decode()
        return block(pretty)


class AttemptInline(ReadOnly, TabularInline):  # type: ignore[misc]
    model = DeliveryAttempt
    extra = 0
    fields = ["number", "attempted_at", "http", "took", "error", "request", "answer"]
    readonly_fields = fields
    hide_title = True

    @admin.display(description="HTTP", empty_value="—")
    def http(self, attempt: DeliveryAttempt) -> int | None:
        return attempt.status_code

    @admin.display(description="Took", empty_value="—")
    def took(self, attempt: DeliveryAttempt) -> str | None:
        spent = attempt.duration_ms
        return None if spent is None else f"{spent}\u00a0ms"

    @admin.display(description="Request")
    def request(self, attempt: DeliveryAttempt) -> str:
        event = attempt.delivery.event
        return _boxed(_wire(f"POST {attempt.url}", sent_headers(attempt), event.body))

    @admin.display(description="Answer", empty_value="—")
    def answer(self, attempt: DeliveryAttempt) -> str | None:
        if attempt.status_code is None and not attempt.response_body:
            return None
        start = f"HTTP {attempt.status_code or '—'}"
        return _boxed(_wire(start, attempt.response_headers, attempt.response_body))

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeliveryAttempt]:
        rows: QuerySet[DeliveryAttempt] = super().get_queryset(request)
        return rows.select_related("delivery__event")


def _boxed(text: str) -> str:
    """Narrow enough that request and answer stand side by side."""
    return format_html('<div style="width:21rem;overflow-wrap:anywhere">{}</div>', block(text))


def _wire(start: str, headers: dict[str, str], body: str) -> str:
    return "\n".join([start, *(f"{name}: {text}" for name, text in headers.items()), "", body])


@admin.register(Delivery)
class DeliveryAdmin(CsvList, Pictured, Buttons, FoundById, Titled, ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No delivery yet. Add a webhook: every event it hears makes one."
    csv_columns = [
        "id",
        "event_id",
        "event__type",
        "event__client__name",
        "endpoint__url",
        "status",
        "attempt_number",
        "last_http_status",
        "last_error",
        "next_retry_at",
        "delivered_at",
        "created_at",
    ]
    list_display = [
        "what",
        "client",
        "receiver",
        "state",
        "tries",
        "http",
        "trouble",
        "next_try",
        "created_at",
    ]
    fieldsets = [
        (None, {"fields": ["event_link", "endpoint", "state", "created_at", "delivered_at"]}),
        ("Tries", {"fields": ["tries", "http", "last_error", "next_try"]}),
    ]
    list_filter = ["status"]
    list_select_related = ["event__client", "endpoint"]
    id_fields = ["id", "event_id"]
    search_help_text = "The id of a delivery or of its event."
    show_full_result_count = False
    paginator = InfinitePaginator
    actions = ["redeliver"]
    actions_submit_line = ["redeliver_this"]
    inlines = [AttemptInline]

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup == "endpoint__id__exact" or bool(
            super().lookup_allowed(lookup, value, request)
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        rows: QuerySet[Delivery] = super().get_queryset(request)
        return without_secrets(rows, "event__client", "endpoint").defer("event__body")

    def plots(self, request: HttpRequest) -> list[str]:
        return [deliveries_plot(timezone.now())]

    def title_of(self, delivery: Delivery) -> str:
        return f"{delivery.event} to {delivery.endpoint.url}"

    @badge("Status", DELIVERY_COLOURS, ordering="status")
    def state(self, delivery: Delivery) -> str:
        return delivery.get_status_display()

    @admin.display(description="To", ordering="endpoint")
    def receiver(self, delivery: Delivery) -> str:
        return short_url(delivery.endpoint.url)

    @admin.display(description="Tries", ordering="attempt_number")
    def tries(self, delivery: Delivery) -> int:
        return delivery.attempt_number

    @admin.display(description="HTTP", ordering="last_http_status", empty_value="—")
    def http(self, delivery: Delivery) -> int | None:
        return delivery.last_http_status

    @admin.display(description="Event", ordering="event__type")
    def what(self, delivery: Delivery) -> str:
        return str(delivery.event)

    @admin.display(description="Event")
    def event_link(self, delivery: Delivery) -> str:
        url = reverse("admin:notifications_event_change", args=[delivery.event_id])
        return inside_link(url, str(delivery.event))

    @admin.display(description="Client")
    def client(self, delivery: Delivery) -> str:
        return str(delivery.event.client)

    @admin.display(description="Last error", empty_value="—")
    def trouble(self, delivery: Delivery) -> str | None:
        return delivery.last_error or None

    @admin.display(description="Next try", ordering="next_retry_at", empty_value="—")
    def next_try(self, delivery: Delivery) -> str | None:
        return moment(delivery.next_retry_at) if delivery.status in Delivery.OPEN else None

    def has_redeliver_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("notifications.change_delivery")

    @admin.action(description="Send again", permissions=["redeliver"])
    def redeliver(self, request: HttpRequest, queryset: Any) -> None:
        job = partial(redelivery.redeliver, actor=actor_of(request))
        do_each(request, queryset, job, "being sent again")

    @unfold_action(description="Send again", permissions=["redeliver"], icon="send")  # type: ignore[untyped-decorator]
    def redeliver_this(self, request: HttpRequest, delivery: Delivery) -> None:
        self.redeliver(request, [delivery])


def deliveries_plot(now: dt.datetime) -> SafeString:
    start = now.replace(minute=0, second=0, microsecond=0) - (HOURS - 1) * HOUR
    hours = [start + n * HOUR for n in range(HOURS)]
    counted = health.deliveries_by_hour(start)
    series = [
        Series(name, tone, [sum(counted[hour, one] for one in members) for hour in hours])
        for name, (tone, members) in RESULTS.items()
    ]
    labels = [f"{hour:%H}h" for hour in hours]
    empty = "None in 24 hours."
    return plots.bars("Deliveries of 24 hours (UTC)", labels, series, width=plots.WIDE, empty=empty)
