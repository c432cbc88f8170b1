"""Webhooks in the console: their list, their page, and sending again what was missed."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.decorators import action as unfold_action
from unfold.widgets import (
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    WARN,
    Buttons,
    Detailed,
    Titled,
    badge,
    countdown,
    do_each,
    inside_link,
    short_url,
    shown_once,
    without_secrets,
)
from common.console_csv import CsvList
from notifications import endpoints, health, redelivery
from notifications.admin_channels import or_form_error
from notifications.headers import pack
from notifications.models import WebhookEndpoint

HOUR = dt.timedelta(hours=1)
STATES = {"on": GOOD, "failing": BAD, "resting": WARN, "off": ""}


class RecoverForm(forms.Form):
    since = forms.SplitDateTimeField(
        widget=UnfoldAdminSplitDateTimeWidget,
        help_text="UTC. What was not accepted since then is sent again.",
    )


class RecoverPage:
    """An action that asks for the moment before it acts."""

    @admin.action(description="Recover since …", permissions=["change"])
    def recover(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> Any:
        initial = {"since": timezone.now().replace(microsecond=0) - 24 * HOUR}
        form = RecoverForm(request.POST if "recover" in request.POST else None, initial=initial)
        if not form.is_valid():
            return self._ask(request, queryset, form)
        since = form.cleaned_data["since"]
        job = partial(redelivery.recover, since=since, actor=actor_of(request))
        do_each(request, queryset, job, "being recovered: what was not accepted is sent again")
        return None

    def _ask(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint], form: forms.Form
    ) -> HttpResponse:
        site: Any = self.admin_site  # type: ignore[attr-defined]
        context = site.each_context(request) | {
            "title": "Recover webhooks",
            "form": form,
            "endpoints": queryset,
            "media": form.media,
        }
        return TemplateResponse(request, "admin/notifications/recover.html", context)


class HeadersField(forms.JSONField):
    def prepare_value(self, value: Any) -> Any:
        """What is kept is never shown."""
        return "" if value is None else super().prepare_value(value)


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    own_headers = HeadersField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
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
        widgets = {"events": UnfoldAdminTextInputWidget}
        help_texts = {
            "events": "Types or groups, such as product.*, separated by commas; * is all."
        }

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
class WebhookEndpointAdmin(CsvList, Detailed, Buttons, Titled, RecoverPage, ModelAdmin):  # type: ignore[misc]
    form = EndpointForm
    empty_text = "No webhook yet. Add one: every event it hears is sent there, signed."
    csv_columns = [
        "id",
        "url",
        "client__name",
        "events",
        "description",
        "is_active",
        "disabled_reason",
        "failing_since",
        "resting_until",
        "timeout_seconds",
        "throttle_per_second",
        "created_at",
    ]
    list_per_page = 50
    list_display = ["receiver", "client", "heard", "state", "success", "p95", "rotation"]
    list_filter = ["is_active"]
    list_select_related = ["client"]
    search_fields = ["url", "client__name"]
    show_full_result_count = False
    actions = [
        "send_test",
        "rotate_secret",
        "rotate_secret_slowly",
        "rotate_secret_at_once",
        "recover",
        "enable",
        "disable",
    ]
    actions_submit_line = ["test_this", "rotate_this", "enable_this", "disable_this"]
    fieldsets = [
        (None, {"fields": ["client", "url", "events", "description"]}),
        ("How", {"fields": ["timeout_seconds", "throttle_per_second", "own_headers"]}),
    ]
    facts = [
        ("Health", {"fields": ["state", "success", "p95", "failing_since", "resting_until"]}),
        ("Signing", {"fields": ["rotation", "header_names", "deliveries"]}),
    ]
    readonly_fields = [
        "state",
        "success",
        "p95",
        "failing_since",
        "resting_until",
        "rotation",
        "header_names",
        "deliveries",
    ]
    autocomplete_fields = ["client"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        return without_secrets(super().get_queryset(request), "client")

    def title_of(self, endpoint: WebhookEndpoint) -> str:
        return endpoint.url

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        first, *others = self.fieldsets
        return [first, *self.facts, *others] if obj else self.fieldsets

    def add_details(self, rows: list[Any]) -> None:
        found = health.health_of([row.pk for row in rows])
        for row in rows:
            row.health = found[row.pk]

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what would change something."""
        endpoint = self.get_object(request, str(object_id))
        active = endpoint is not None and endpoint.is_active
        useless = {"enable_this"} if active else {"disable_this", "test_this"}
        found = super().get_actions_submit_line(request, object_id)
        return [button for button in found if button.method.__name__ not in useless]

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
    def send_test(self, request: HttpRequest, queryset: Any) -> None:
        job = partial(endpoints.send_test, actor=actor_of(request))
        do_each(request, queryset, job, "being tested")

    @admin.action(
        description="Rotate the secret (the old one signs for 1 h)", permissions=["change"]
    )
    def rotate_secret(self, request: HttpRequest, queryset: Any) -> None:
        self._rotate(request, queryset, HOUR)

    @admin.action(
        description="Rotate the secret (the old one signs for 24 h)", permissions=["change"]
    )
    def rotate_secret_slowly(self, request: HttpRequest, queryset: Any) -> None:
        self._rotate(request, queryset, 24 * HOUR)

    @admin.action(description="Rotate the secret (the old one is dead)", permissions=["change"])
    def rotate_secret_at_once(self, request: HttpRequest, queryset: Any) -> None:
        self._rotate(request, queryset, dt.timedelta())

    def _rotate(self, request: HttpRequest, rows: Any, grace: dt.timedelta) -> None:
        for endpoint in rows:
            seconds = int(grace.total_seconds())
            secret = endpoints.rotate_secret(endpoint, seconds, actor_of(request))
            self._show_secret(request, endpoint.url, secret)

    @unfold_action(description="Send a test event", permissions=["change"], icon="send")  # type: ignore[untyped-decorator]
    def test_this(self, request: HttpRequest, endpoint: WebhookEndpoint) -> None:
        self.send_test(request, [endpoint])

    @unfold_action(description="Rotate the secret", permissions=["change"], icon="autorenew")  # type: ignore[untyped-decorator]
    def rotate_this(self, request: HttpRequest, endpoint: WebhookEndpoint) -> None:
        self.rotate_secret(request, [endpoint])

    @unfold_action(description="Enable", permissions=["change"], icon="check")  # type: ignore[untyped-decorator]
    def enable_this(self, request: HttpRequest, endpoint: WebhookEndpoint) -> None:
        self.enable(request, [endpoint])

    @unfold_action(description="Disable", permissions=["change"], icon="block")  # type: ignore[untyped-decorator]
    def disable_this(self, request: HttpRequest, endpoint: WebhookEndpoint) -> None:
        self.disable(request, [endpoint])

    @admin.display(description="To", ordering="url")
    def receiver(self, endpoint: WebhookEndpoint) -> str:
        return short_url(endpoint.url)

    @admin.display(description="Events")
    def heard(self, endpoint: WebhookEndpoint) -> str:
        return "All" if "*" in endpoint.events else ", ".join(endpoint.events)

    @badge("State", STATES, ordering="is_active")
    def state(self, endpoint: WebhookEndpoint) -> str:
        if not endpoint.is_active:
            return "Off"
        if endpoint.resting_until and endpoint.resting_until > timezone.now():
            return "Resting"
        return "Failing" if endpoint.failing_since else "On"

    @admin.display(description="Success", empty_value="—")
    def success(self, endpoint: WebhookEndpoint) -> str | None:
        found = _health(endpoint)
        pct = found.success_pct
        if pct is None:
            return None
        bar = '<span style="white-space:nowrap"><progress value="{}" max="100" style="width:3rem">'
        return format_html(
            bar + "</progress>&nbsp;{}&nbsp;% of&nbsp;{}</span>", pct, pct, found.settled
        )

    @admin.display(description="p95", empty_value="—")
    def p95(self, endpoint: WebhookEndpoint) -> str | None:
        took = _health(endpoint).p95_ms
        return None if took is None else f"{took:.0f}\u00a0ms"

    @admin.display(description="Old secret signs for", empty_value="—")
    def rotation(self, endpoint: WebhookEndpoint) -> str | None:
        until = endpoint.secret_rotation_expires_at
        return countdown(until) if until and until > timezone.now() else None

    @admin.display(description="Deliveries")
    def deliveries(self, endpoint: WebhookEndpoint) -> str:
        url = reverse("admin:notifications_delivery_changelist")
        return inside_link(f"{url}?endpoint__id__exact={endpoint.pk}", "All to this webhook")

    @admin.display(description="Own headers set", empty_value="—")
    def header_names(self, endpoint: WebhookEndpoint) -> str | None:
        return ", ".join(endpoints.header_names(endpoint)) or None

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: Any) -> None:
        self._switch(request, queryset, on=True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: Any) -> None:
        self._switch(request, queryset, on=False)

    def _switch(self, request: HttpRequest, rows: Any, *, on: bool) -> None:
        job = partial(endpoints.update_endpoint, actor=actor_of(request), is_active=on)
        do_each(request, rows, job, "switched on" if on else "switched off")

    def _show_secret(self, request: HttpRequest, url: str, secret: str) -> None:
        text = shown_once(f"The secret of {url}", secret)
        self.message_user(request, text, messages.WARNING)


def _health(endpoint: WebhookEndpoint) -> health.Health:
    found: health.Health | None = getattr(endpoint, "health", None)
    return found or health.health_of([endpoint.pk])[endpoint.pk]
