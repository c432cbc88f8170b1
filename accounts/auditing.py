"""Who acts in the console, and a log of what Django's own admin writes there."""

from __future__ import annotations

from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts import audit
from accounts.audit import Actor
from accounts.models import User


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
