"""The console's screens for clients and their API keys."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action as unfold_action
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRadioSelectWidget,
)

from accounts import clients, keys, webhook_secrets
from accounts.auditing import actor_of
from accounts.models import ApiKey, Client
from accounts.usage import usage_of, usages_of
from common.console import (
    BAD,
    GOOD,
    WARN,
    Buttons,
    Detailed,
    ReadOnly,
    Titled,
    badge,
    countdown,
    do_each,
    inside_link,
    shown_once,
    without_secrets,
)
from common.console_csv import CsvList

TIER_COLOURS = {"basic": "", "professional": GOOD, "enterprise": WARN}
SOON = dt.timedelta(days=14)


class ClientForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Client
        fields = list(clients.FIELDS)

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()

    def clean_timezone(self) -> str:
        name = str(self.cleaned_data["timezone"])
        if name not in zoneinfo.available_timezones():
            raise forms.ValidationError("Must be an IANA time zone such as Europe/Berlin.")
        return name


class ThroughJobs(CsvList, Buttons, Titled, ModelAdmin):  # type: ignore[misc]
    """Saving calls the job modules."""

    show_full_result_count = False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001
        if change:
            self.change(request, obj, {name: form.cleaned_data[name] for name in form.changed_data})
        else:
            obj.pk = self.create(request, form.cleaned_data).pk

    def create(self, request: HttpRequest, data: dict[str, Any]) -> Any:
        raise NotImplementedError

    def change(self, request: HttpRequest, obj: Any, changes: dict[str, Any]) -> None:
        raise NotImplementedError

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class KeyColumns:
    """What of a key may be seen."""

    @badge("State", {"live": GOOD, "expires soon": WARN, "expired": BAD, "revoked": BAD})
    def state(self, key: ApiKey) -> str:
        if key.invalidated_at is not None:
            return "Revoked"
        if not key.is_live:
            return "Expired"
        soon = key.expires_at is not None and key.expires_at < timezone.now() + SOON
        return "Expires Soon" if soon else "Live"

    @admin.display(description="Scopes")
    def scope_list(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="Last used", ordering="last_used_at", empty_value="Never")
    def used(self, key: ApiKey) -> dt.datetime | None:
        return key.last_used_at

    @admin.display(description="Expires", ordering="expires_at", empty_value="Never")
    def expires(self, key: ApiKey) -> dt.datetime | None:
        return key.expires_at


class KeysOfClient(ReadOnly, KeyColumns, TabularInline):  # type: ignore[misc]
    model = ApiKey
    fields = ["name", "prefix", "scope_list", "state", "used", "expires"]
    readonly_fields = fields
    verbose_name_plural = "its keys"
    show_change_link = True
    hide_title = True
    extra = 0
    per_page = 25


@admin.register(Client)
class ClientAdmin(Detailed, ThroughJobs):
    form = ClientForm
    empty_text = "No client yet. Add one: it registers shops with a key of its own."
    csv_columns = [
        "id",
        "name",
        "email",
        "subscription_tier",
        "is_active",
        "max_websites",
        "max_products_per_website",
        "timezone",
        "created_at",
    ]
    list_display = ["name", "email", "tier", "active", "shops", "watched", "live_keys", "rotation"]
    list_filter = ["subscription_tier", "is_active"]
    search_fields = ["name", "email"]
    readonly_fields = ["shops", "watched", "new_key", "rotation", "created_at", "updated_at"]
    actions = ["rotate_secrets", "suspend_clients"]
    actions_submit_line = ["rotate_webhook_secret", "suspend"]
    inlines = [KeysOfClient]
    fieldsets = [
        (None, {"fields": ["name", "email", "is_active", "timezone"]}),
        ("Limits", {"fields": ["subscription_tier", "max_websites", "max_products_per_website"]}),
    ]
    facts = [
        ("Use", {"fields": ["shops", "watched"]}),
        ("Secrets", {"fields": ["rotation", "new_key"]}),
        ("Since", {"fields": ["created_at", "updated_at"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*self.fieldsets, *self.facts] if obj else self.fieldsets

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[Client]:
        live = Count("api_keys", filter=Q(api_keys__invalidated_at=None))
        rows: QuerySet[Client] = super().get_queryset(request)
        return without_secrets(rows.annotate(live_key_count=live))

    def add_details(self, rows: list[Any]) -> None:
        usages = usages_of([client.pk for client in rows])
        for client in rows:
            client.usage = usages[client.pk]

    def create(self, request: HttpRequest, data: dict[str, Any]) -> Client:
        return clients.create(actor=actor_of(request), **data)

    def change(self, request: HttpRequest, obj: Client, changes: dict[str, Any]) -> None:
        clients.update(obj, changes, actor=actor_of(request))

    @badge("Tier", TIER_COLOURS, ordering="subscription_tier")
    def tier(self, client: Client) -> str:
        return client.get_subscription_tier_display()

    @admin.display(description="Active", boolean=True, ordering="is_active")
    def active(self, client: Client) -> bool:
        return client.is_active

    @admin.display(description="Websites")
    def shops(self, client: Client) -> str:
        return f"{_used(client, 'websites'):,}\u00a0/\u00a0{client.max_websites:,}"

    @admin.display(description="Products")
    def watched(self, client: Client) -> str:
        limit = f"{client.max_websites:,}\u00a0×\u00a0{client.max_products_per_website:,}"
        return f"{_used(client, 'products'):,}\u00a0/\u00a0{limit}"

    @admin.display(description="Keys", ordering="live_key_count")
    def live_keys(self, client: Client) -> int:
        return int(getattr(client, "live_key_count", 0))

    @admin.display(description="Old secret signs for", empty_value="—")
    def rotation(self, client: Client) -> str | None:
        until = client.secret_rotation_expires_at
        return countdown(until) if until and until > timezone.now() else None

    @admin.display(description="API keys")
    def new_key(self, client: Client) -> str:
        url = reverse("admin:accounts_apikey_add")
        return inside_link(f"{url}?holder=client&client={client.pk}", "New key for this client")

    @unfold_action(  # type: ignore[untyped-decorator]
        description="Rotate webhook secret", permissions=["change"], icon="autorenew"
    )
    def rotate_webhook_secret(self, request: HttpRequest, client: Client) -> None:
        """For an hour the old one signs along."""
        secret = webhook_secrets.rotate(client, actor=actor_of(request))
        text = f"New webhook secret of {client}"
        self.message_user(request, shown_once(text, secret), messages.WARNING)

    @unfold_action(description="Suspend", permissions=["change"], icon="block")  # type: ignore[untyped-decorator]
    def suspend(self, request: HttpRequest, client: Client) -> None:
        self.suspend_clients(request, [client])

    @admin.action(description="Rotate webhook secret", permissions=["change"])
    def rotate_secrets(self, request: HttpRequest, chosen: QuerySet[Client]) -> None:
        for client in chosen:
            self.rotate_webhook_secret(request, client)

    @admin.action(description="Suspend", permissions=["change"])
    def suspend_clients(self, request: HttpRequest, chosen: Any) -> None:
        do_each(request, chosen, partial(clients.suspend, actor=actor_of(request)), "suspended")


def _used(client: Client, what: str) -> int:
    usage = getattr(client, "usage", None)
    if usage is None:
        usage = usage_of(client)
        client.usage = usage  # type: ignore[attr-defined]
    return int(usage.get(what, 0))


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    holder = forms.ChoiceField(
        label="Who holds it",
        choices=[
            ("client", "A client: the key sees this client's data only"),
            ("operator", "An operator: the key sees every client"),
        ],
        widget=UnfoldAdminRadioSelectWidget,
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices, widget=UnfoldAdminCheckboxSelectMultipleWidget
    )

    class Meta:
        model = ApiKey
        fields = ["client", "name", "scopes", "rate_limit_rpm", "expires_at"]
        help_texts = {
            "client": "Only for a client's key.",
            "expires_at": "Empty: it does not expire.",
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        # Whose it is is asked once: a key does not change hands.
        holder = data.pop("holder", None)
        if holder == "client" and data.get("client") is None and "client" not in self.errors:
            self.add_error("client", "Choose the client.")
        if holder == "operator" and data.get("client") is not None:
            self.add_error("client", "An operator's key belongs to no client: leave this empty.")
        return data


@admin.register(ApiKey)
class ApiKeyAdmin(KeyColumns, ThroughJobs):
    form = ApiKeyForm
    empty_text = "No key yet. Add one: its text is shown once."
    csv_columns = [
        "id",
        "name",
        "prefix",
        "client__name",
        "scopes",
        "rate_limit_rpm",
        "last_used_at",
        "expires_at",
        "invalidated_at",
        "created_at",
    ]
    list_display = ["name", "prefix", "client", "scope_list", "state", "used", "expires"]
    list_filter = [("invalidated_at", admin.EmptyFieldListFilter)]
    list_select_related = ["client"]
    search_fields = ["name", "prefix", "client__name"]
    autocomplete_fields = ["client"]
    readonly_fields = ["prefix", "state", "used", "invalidated_at", "created_at"]
    actions = ["revoke_keys"]
    actions_submit_line = ["rotate", "revoke"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return without_secrets(super().get_queryset(request), "client")

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        asked = ["client", "name", "scopes", "rate_limit_rpm", "expires_at"]
        return [*asked, *self.readonly_fields] if obj else ["holder", *asked]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        if obj is not None:
            form.base_fields.pop("holder", None)
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        return [*self.readonly_fields, *(["client"] if obj else [])]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        live = not isinstance(obj, ApiKey) or obj.is_live
        return live and bool(super().has_change_permission(request, obj))

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """A key that is revoked stays so."""
        key = self.get_object(request, str(object_id))
        usable = key is not None and key.is_live
        return super().get_actions_submit_line(request, object_id) if usable else []

    def create(self, request: HttpRequest, data: dict[str, Any]) -> ApiKey:
        key, plaintext = keys.issue(actor=actor_of(request), **data)
        self._show(request, key, plaintext)
        return key

    def change(self, request: HttpRequest, obj: ApiKey, changes: dict[str, Any]) -> None:
        if changes:
            keys.update(obj, changes, actor=actor_of(request))

    def _show(self, request: HttpRequest, key: ApiKey, plaintext: str) -> None:
        self.message_user(request, shown_once(f"API key {key.name}", plaintext), messages.WARNING)

    @unfold_action(description="Rotate", permissions=["change"], icon="autorenew")  # type: ignore[untyped-decorator]
    def rotate(self, request: HttpRequest, key: ApiKey) -> None:
        self._show(request, *keys.rotate(key, actor=actor_of(request)))

    @unfold_action(description="Revoke", permissions=["change"], icon="block")  # type: ignore[untyped-decorator]
    def revoke(self, request: HttpRequest, key: ApiKey) -> None:
        self.revoke_keys(request, [key])

    @admin.action(description="Revoke", permissions=["change"])
    def revoke_keys(self, request: HttpRequest, chosen: Any) -> None:
        do_each(request, chosen, partial(keys.revoke, actor=actor_of(request)), "revoked")
