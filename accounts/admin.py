"""The console's screens for people, clients, keys and the audit log.

State changes are POST only: list actions and buttons of the form, never links.
"""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRadioSelectWidget,
)

from accounts import audit, clients, keys, webhook_secrets
from accounts.audit import Actor
from accounts.models import ApiKey, AuditEntry, Client, User
from common.console import ReadOnly

admin.site.unregister(Group)


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)  # the console asks for a login first
    return Actor.operator(request.user)


class Audited:
    """Writes that Django's own admin does reach our log as well, in its transaction."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        audit.record(actor_of(request), "create", obj)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        audit.record(actor_of(request), "update", obj, after={"changed": _named(message)})
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for obj in queryset:
            audit.record(actor_of(request), "delete", obj)
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def _named(message: Any) -> list[str]:
    if not isinstance(message, list):
        return []
    return [name for part in message for name in part.get("changed", {}).get("fields", [])]


@admin.register(User)
class UserAdmin(Audited, BaseUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(Audited, BaseGroupAdmin, ModelAdmin):  # type: ignore[misc]
    pass


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


class ThroughJobs(ModelAdmin):  # type: ignore[misc]
    """Saving calls the job modules; then the pressed button of the form, if any."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001
        if change:
            self.change(request, obj, {name: form.cleaned_data[name] for name in form.changed_data})
            self._press(request, obj)
        else:
            obj.pk = self.create(request, form.cleaned_data).pk

    def _press(self, request: HttpRequest, obj: Any) -> None:
        for button in self.get_actions_submit_line(request, obj.pk):
            if button.action_name in request.POST:
                button.method(request, obj)

    def create(self, request: HttpRequest, data: dict[str, Any]) -> Any:
        raise NotImplementedError

    def change(self, request: HttpRequest, obj: Any, changes: dict[str, Any]) -> None:
        raise NotImplementedError

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Client)
class ClientAdmin(ThroughJobs):
    form = ClientForm
    list_display = ["name", "email", "subscription_tier", "active", "live_keys", "rotation"]
    list_filter = ["subscription_tier", "is_active"]
    search_fields = ["name", "email"]
    readonly_fields = ["secret_rotation_expires_at", "created_at", "updated_at"]
    actions = ["rotate_secrets", "suspend_clients"]
    actions_submit_line = ["rotate_webhook_secret", "suspend"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Client]:
        live = Count("api_keys", filter=Q(api_keys__invalidated_at=None))
        rows: QuerySet[Client] = super().get_queryset(request)
        return rows.annotate(live_key_count=live)

    def create(self, request: HttpRequest, data: dict[str, Any]) -> Client:
        return clients.create(actor=actor_of(request), **data)

    def change(self, request: HttpRequest, obj: Client, changes: dict[str, Any]) -> None:
        clients.update(obj, changes, actor=actor_of(request))

    @admin.display(description="Active", boolean=True, ordering="is_active")
    def active(self, client: Client) -> bool:
        return client.is_active

    @admin.display(description="Keys", ordering="live_key_count")
    def live_keys(self, client: Client) -> int:
        return int(getattr(client, "live_key_count", 0))

    @admin.display(description="Secret rotation")
    def rotation(self, client: Client) -> str:
        if len(client.live_webhook_secrets()) == 1:
            return "—"
        return f"both secrets sign until {client.secret_rotation_expires_at:%Y-%m-%d %H:%M} UTC"

    @admin.action(description="Rotate webhook secret", permissions=["change"])
    def rotate_webhook_secret(self, request: HttpRequest, client: Client) -> None:
        secret = webhook_secrets.rotate(client, actor=actor_of(request))
        text = f"New webhook secret of {client}, shown only now: {secret}"
        self.message_user(request, text, messages.WARNING)

    @admin.action(description="Suspend", permissions=["change"])
    def suspend(self, request: HttpRequest, client: Client) -> None:
        clients.suspend(client, actor=actor_of(request))
        self.message_user(request, f"{client} is suspended.")

    @admin.action(description="Rotate webhook secret", permissions=["change"])
    def rotate_secrets(self, request: HttpRequest, chosen: QuerySet[Client]) -> None:
        for client in chosen:
            self.rotate_webhook_secret(request, client)

    @admin.action(description="Suspend", permissions=["change"])
    def suspend_clients(self, request: HttpRequest, chosen: QuerySet[Client]) -> None:
        for client in chosen:
            self.suspend(request, client)


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
class ApiKeyAdmin(ThroughJobs):
    form = ApiKeyForm
    list_display = ["name", "prefix", "client", "scope_list", "live", "last_used_at", "expires_at"]
    list_filter = [("invalidated_at", admin.EmptyFieldListFilter)]
    list_select_related = ["client"]
    search_fields = ["name", "prefix", "client__name"]
    autocomplete_fields = ["client"]
    readonly_fields = ["prefix", "last_used_at", "invalidated_at", "created_at"]
    actions = ["revoke_keys"]
    actions_submit_line = ["rotate", "revoke"]

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

    def create(self, request: HttpRequest, data: dict[str, Any]) -> ApiKey:
        key, plaintext = keys.issue(actor=actor_of(request), **data)
        self._show(request, key, plaintext)
        return key

    def change(self, request: HttpRequest, obj: ApiKey, changes: dict[str, Any]) -> None:
        if changes:
            keys.update(obj, changes, actor=actor_of(request))

    def _show(self, request: HttpRequest, key: ApiKey, plaintext: str) -> None:
        text = f"API key {key.name}, shown only now: {plaintext}"
        self.message_user(request, text, messages.WARNING)

    @admin.display(description="Scopes")
    def scope_list(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="Live", boolean=True)
    def live(self, key: ApiKey) -> bool:
        return key.is_live

    @admin.action(description="Rotate", permissions=["change"])
    def rotate(self, request: HttpRequest, key: ApiKey) -> None:
        self._show(request, *keys.rotate(key, actor=actor_of(request)))

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, key: ApiKey) -> None:
        keys.revoke(key, actor=actor_of(request))
        self.message_user(request, f"{key} is revoked.")

    @admin.action(description="Revoke", permissions=["change"])
    def revoke_keys(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        for key in chosen:
            self.revoke(request, key)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "Nothing has been changed yet."
    list_display = ["created_at", "actor_name", "verb", "object_type", "object_name", "client"]
    list_filter = ["actor_kind", "verb", "object_type"]
    list_select_related = ["client"]
    search_fields = ["actor_name", "object_name", "object_id", "request_id"]
    show_full_result_count = False
