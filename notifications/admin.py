from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

import orjson
from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import ModelAdmin, TabularInline

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    ReadOnly,
    Titled,
    badge,
    block,
    do_each,
    short_url,
)
from notifications import endpoints, redelivery
from notifications.admin_channels import or_form_error
from notifications.attempts import sent_headers
from notifications.headers import pack, unpack
from notifications.models import Delivery, DeliveryAttempt, Event, WebhookEndpoint

DELIVERY_COLOURS = {
    "pending": INFO,
    "retrying": WARN,
    "success": GOOD,
    "failed": BAD,
    "exhausted": BAD,
}
HOUR = dt.timedelta(hours=1)


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    own_headers = forms.JSONField(
        required=False,
        help_text='Such as {"Authorization": "Bearer …"}. Never shown again; empty leaves them.',
    )

    class Meta:
        model = WebhookEndpoint
        fields = [
            "client",
            "url",
            "events",
            "description",
            "timeout_seconds",
            "throttle_per_second",
        ]

    def clean_own_headers(self) -> dict[str, str] | None:
        given = self.cleaned_data["own_headers"]
        if given is not None and not (
            isinstance(given, dict) and all(isinstance(value, str) for value in given.values())
        ):
            raise forms.ValidationError("Give an object of names and texts.")
        if given:
            or_form_error(pack, given)
        return given

    def clean_throttle_per_second(self) -> int | None:
        return or_form_error(endpoints.checked_throttle, self.cleaned_data["throttle_per_second"])

    def clean_url(self) -> str:
        return or_form_error(endpoints.checked_url, self.cleaned_data["url"])

    def clean_events(self) -> list[str]:
        return or_form_error(endpoints.checked_events, self.cleaned_data["events"])

    def clean_timeout_seconds(self) -> int:
        return or_form_error(endpoints.checked_timeout, self.cleaned_data["timeout_seconds"])


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ModelAdmin):  # type: ignore[misc]
    form = EndpointForm
    list_display = [
        "url",
        "client",
        "events",
        "is_active",
        "disabled_reason",
        "failing_since",
        "resting_until",
        "secret_rotation_expires_at",
    ]
    list_filter = ["is_active"]
    list_select_related = ["client"]
    search_fields = ["url", "client__name"]
    show_full_result_count = False
    actions = [
        "send_test",
        "rotate_secret",
        "rotate_secret_slowly",
        "rotate_secret_at_once",
        "recover_hour",
        "recover_day",
        "recover_week",
        "enable",
        "disable",
    ]
    fields = [
        "client",
        "url",
        "events",
        "description",
        "timeout_seconds",
        "throttle_per_second",
        "own_headers",
        "header_names",
        "is_active",
        "disabled_reason",
        "failing_since",
        "resting_until",
        "secret_rotation_expires_at",
    ]
    readonly_fields = [
        "header_names",
        "is_active",
        "disabled_reason",
        "failing_since",
        "resting_until",
        "secret_rotation_expires_at",
    ]
    autocomplete_fields = ["client"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*self.readonly_fields, "client"] if obj else self.readonly_fields

    def save_model(
        self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: Any
    ) -> None:
        fields: Any = {
            name: form.cleaned_data[name]
            for name in ("url", "events", "description", "timeout_seconds", "throttle_per_second")
        }
        if form.cleaned_data["own_headers"] is not None:
            fields["headers"] = form.cleaned_data["own_headers"]
        if change:
            endpoints.update_endpoint(obj, actor=actor_of(request), **fields)
            return
        made = endpoints.create_endpoint(obj.client, actor=actor_of(request), **fields)
        obj.pk = made.pk
        self._show_secret(request, made.url, made.secret_current)

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        endpoints.delete_endpoint(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        for endpoint in queryset:
            endpoints.delete_endpoint(endpoint, actor=actor_of(request))

    @admin.action(description="Send a test event", permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        job = partial(endpoints.send_test, actor=actor_of(request))
        do_each(request, queryset, job, "being tested")

    @admin.action(
        description="Rotate the secret (the old one signs for 1 h)", permissions=["change"]
    )
    def rotate_secret(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        self._rotate(request, queryset, HOUR)

    @admin.action(
        description="Rotate the secret (the old one signs for 24 h)", permissions=["change"]
    )
    def rotate_secret_slowly(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> None:
        self._rotate(request, queryset, 24 * HOUR)

    @admin.action(description="Rotate the secret (the old one is dead)", permissions=["change"])
    def rotate_secret_at_once(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> None:
        self._rotate(request, queryset, dt.timedelta())

    def _rotate(
        self, request: HttpRequest, rows: QuerySet[WebhookEndpoint], grace: dt.timedelta
    ) -> None:
        for endpoint in rows:
            seconds = int(grace.total_seconds())
            secret = endpoints.rotate_secret(endpoint, seconds, actor_of(request))
            self._show_secret(request, endpoint.url, secret)

    @admin.action(description="Recover the last hour", permissions=["change"])
    def recover_hour(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        self._recover(request, queryset, HOUR)

    @admin.action(description="Recover the last 24 hours", permissions=["change"])
    def recover_day(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        self._recover(request, queryset, 24 * HOUR)

    @admin.action(description="Recover the last 7 days", permissions=["change"])
    def recover_week(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        self._recover(request, queryset, 7 * 24 * HOUR)

    def _recover(
        self, request: HttpRequest, rows: QuerySet[WebhookEndpoint], span: dt.timedelta
    ) -> None:
        job = partial(redelivery.recover, since=timezone.now() - span, actor=actor_of(request))
        do_each(request, rows, job, "being recovered: what was not accepted is sent again")

    @admin.display(description="Own headers set", empty_value="—")
    def header_names(self, endpoint: WebhookEndpoint) -> str | None:
        return ", ".join(sorted(unpack(endpoint.headers))) or None

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        for endpoint in queryset:
            endpoints.update_endpoint(endpoint, actor=actor_of(request), is_active=True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        for endpoint in queryset:
            endpoints.update_endpoint(endpoint, actor=actor_of(request), is_active=False)

    def _show_secret(self, request: HttpRequest, url: str, secret: str) -> None:
        text = format_html("{}: the secret, shown once: <code>{}</code>", url, secret)
        self.message_user(request, text, messages.WARNING)


@admin.register(Event)
class EventAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No event yet. Discoveries, approvals and changes make them."
    list_display = ["type", "sequence", "client", "created_at"]
    list_filter = ["type"]
    list_select_related = ["client"]
    search_fields = ["id", "object_id"]
    show_full_result_count = False
    fields = ["public_id", "type", "client", "sequence", "created_at", "request_id", "content"]
    readonly_fields = ["public_id", "content"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        rows: QuerySet[Event] = super().get_queryset(request)
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
        return block(_wire(f"POST {attempt.url}", sent_headers(attempt), event.body))

    @admin.display(description="Answer", empty_value="—")
    def answer(self, attempt: DeliveryAttempt) -> str | None:
        if attempt.status_code is None and not attempt.response_body:
            return None
        start = f"HTTP {attempt.status_code or '—'}"
        return block(_wire(start, attempt.response_headers, attempt.response_body))

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeliveryAttempt]:
        rows: QuerySet[DeliveryAttempt] = super().get_queryset(request)
        return rows.select_related("delivery__event")


def _wire(start: str, headers: dict[str, str], body: str) -> str:
    return "\n".join([start, *(f"{name}: {text}" for name, text in headers.items()), "", body])


@admin.register(Delivery)
class DeliveryAdmin(Titled, ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No delivery yet. Add a webhook: every event it hears makes one."
    list_display = ["event", "receiver", "state", "tries", "http", "last_error", "created_at"]
    fieldsets = [
        (None, {"fields": ["event", "endpoint", "state", "created_at", "delivered_at"]}),
        ("Tries", {"fields": ["tries", "http", "last_error", "next_retry_at"]}),
    ]
    list_filter = ["status"]
    list_select_related = ["event", "endpoint"]
    search_fields = ["id", "event__id"]
    show_full_result_count = False
    actions = ["redeliver"]
    inlines = [AttemptInline]

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

    def has_redeliver_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("notifications.change_delivery")

    @admin.action(description="Send again", permissions=["redeliver"])
    def redeliver(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        job = partial(redelivery.redeliver, actor=actor_of(request))
        do_each(request, queryset, job, "being sent again")
