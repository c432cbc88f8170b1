"""What a new installation needs before anyone can use it; safe to run again."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import audit, clients, keys
from accounts.models import ApiKey, Client, User
from common.errors import Invalid

OPERATOR_KEY = "Operator (made at the first start)"
# What an operator works with day by day; users and keys stay with the admin group.
DAILY_APPS = ("monitoring", "crawling", "notifications", "django_celery_beat")
# Whoever installs Obsrv tries it by hand and by script: more than a client's default.
FIRST_KEY_RPM = 600


@dataclass(frozen=True)
class Outcome:
    """What was made; an empty secret belongs to something that was there before."""

    operator: str
    operator_password: str
    operator_key: str
    client: str
    client_key: str

    @property
    def made_something(self) -> bool:
        return bool(self.operator_password or self.operator_key or self.client_key)


@transaction.atomic
def prepare(*, operator: str, client: str, email: str) -> Outcome:
    """Groups, an operator with a key, and a client with a key; secrets are answered once."""
    ensure_groups()
    return Outcome(
        operator=operator,
        operator_password=_ensure_operator(operator),
        operator_key=_ensure_operator_key(),
        client=client,
        client_key=_ensure_client(client, email),
    )


def ensure_groups() -> None:
    """Give each group what it lacks; what an operator added to it stays."""
    for name, permissions in _group_permissions().items():
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.add(*permissions)


def _group_permissions() -> dict[str, QuerySet[Permission]]:
    everything = Permission.objects.all()
    viewing = everything.filter(codename__startswith="view_")
    daily = Q(content_type__app_label__in=DAILY_APPS)
    return {
        "viewer": viewing,
        "operator": everything.filter(Q(codename__startswith="view_") | daily),
        "admin": everything,
    }


def _ensure_operator(username: str) -> str:
    if User.objects.filter(username=username).exists():
        return ""
    user = User(username=username, is_staff=True, is_superuser=True)
    password = secrets.token_urlsafe(15)
    user.set_password(password)
    try:
        user.full_clean()
    except ValidationError as error:
        raise Invalid(f"operator: {' '.join(error.messages)}") from error
    user.save()
    audit.record(audit.SYSTEM, "create", user)
    return password


def _ensure_operator_key() -> str:
    if ApiKey.objects.live().filter(client=None).exists():
        return ""
    _, plaintext = keys.issue(
        client=None, name=OPERATOR_KEY, scopes=ApiKey.Scope.values, actor=audit.SYSTEM
    )
    return plaintext


def _ensure_client(name: str, email: str) -> str:
    if Client.objects.filter(email__iexact=email).exists():
        return ""
    client = clients.create(name=name, email=email, actor=audit.SYSTEM)
    _, plaintext = keys.issue(
        client=client,
        name="First key",
        scopes=ApiKey.Scope.values,
        actor=audit.SYSTEM,
        rate_limit_rpm=FIRST_KEY_RPM,
    )
    return plaintext
