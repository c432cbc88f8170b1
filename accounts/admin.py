"""The console's screens for people, clients, keys and the audit log.

State changes are POST only: list actions and buttons of the form, never links.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator

from accounts import logins
from accounts.admin_clients import ApiKeyAdmin, ClientAdmin
from accounts.auditing import Audited, actor_of
from accounts.models import AuditEntry, FailedLogin, User
from common.console import ReadOnly, countdown, do_each, without_secrets
from common.console_csv import CsvList

__all__ = ["ApiKeyAdmin", "Audited", "ClientAdmin", "actor_of"]

admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(CsvList, Audited, BaseUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    csv_columns = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login"]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(Audited, BaseGroupAdmin, ModelAdmin):  # type: ignore[misc]
    pass


class Exactly(TextFilter):  # type: ignore[misc]
    """What is typed, not a choice of all there is: the log is long."""

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        given = self.value()
        return rows.filter(**{self.parameter_name: given.strip()}) if given else rows


class ActorFilter(Exactly):
    title, parameter_name = "who", "actor_name"


class VerbFilter(Exactly):
    title, parameter_name = "what was done", "verb"


class ObjectFilter(Exactly):
    title, parameter_name = "to what (accounts.client …)", "object_type"


@admin.register(FailedLogin)
class FailedLoginAdmin(CsvList, ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Who may not log in for a while, and who is on the way there."""

    csv_columns = ["username", "address", "failures", "last_at"]
    empty_text = "Nobody has given a wrong password lately."
    list_display = ["who", "address", "failures", "last_at", "locked"]
    search_fields = ["username", "address"]
    show_full_result_count = False
    actions = ["unlock"]

    def has_unlock_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.delete_failedlogin")

    @admin.action(description="Unlock", permissions=["unlock"])
    def unlock(self, request: HttpRequest, chosen: QuerySet[FailedLogin]) -> None:
        job = partial(logins.unlock, actor=actor_of(request))
        do_each(request, chosen, job, "may try again")

    @admin.display(description="User name", ordering="username")
    def who(self, row: FailedLogin) -> str:
        return row.username or "All names together"

    @admin.display(description="Locked until", empty_value="—")
    def locked(self, row: FailedLogin) -> str | None:
        until = logins.locked_until(row)
        return countdown(until) if until else None


@admin.register(AuditEntry)
class AuditEntryAdmin(CsvList, ReadOnly, ModelAdmin):  # type: ignore[misc]
    csv_columns = [
        "id",
        "created_at",
        "actor_kind",
        "actor_name",
        "verb",
        "object_type",
        "object_id",
        "object_name",
        "client__name",
        "before",
        "after",
        "request_id",
    ]
    empty_text = "Nothing has been changed yet."
    list_display = ["created_at", "actor_name", "verb", "object_type", "object_name", "client"]
    list_filter = ["actor_kind", ActorFilter, VerbFilter, ObjectFilter]
    list_filter_submit = True
    list_select_related = ["client"]
    search_fields = ["object_id"]
    search_help_text = "The id of what was changed, or of a request."
    show_full_result_count = False
    paginator = InfinitePaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        return without_secrets(super().get_queryset(request), "client")

    def get_search_results(
        self, request: HttpRequest, rows: QuerySet[AuditEntry], term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Exactly: the log is long."""
        wanted = Q(object_id=term.strip()) | Q(request_id=term.strip())
        return (rows.filter(wanted) if term.strip() else rows), False
