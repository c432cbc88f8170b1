"""Clients: made, changed, suspended and closed by operators."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import audit, keys, webhook_secrets
from accounts.audit import Actor
from accounts.models import ApiKey, Client
from common.errors import Conflict, Invalid

FIELDS = (
    "name",
    "email",
    "subscription_tier",
    "is_active",
    "max_websites",
    "max_products_per_website",
    "timezone",
)


@transaction.atomic
def create(*, name: str, email: str, actor: Actor, **settings: Any) -> Client:
    client = Client(name=name, webhook_secret_current=webhook_secrets.new_secret())
    _apply(client, settings | {"email": email})
    client.save()
    audit.record(actor, "create", client, client_id=client.pk, after=_facts(client))
    return client


@transaction.atomic
def update(client: Client, changes: dict[str, Any], *, actor: Actor) -> Client:
    locked = Client.objects.select_for_update().get(pk=client.pk)
    before = _facts(locked)
    _apply(locked, changes)
    locked.save()
    after = _facts(locked)
    if after != before:
        audit.record(actor, "update", locked, client_id=locked.pk, before=before, after=after)
    return locked


def suspend(client: Client, *, actor: Actor) -> Client:
    """Its keys are refused and its shops rest, until it is made active again."""
    return update(client, {"is_active": False}, actor=actor)


@transaction.atomic
def close(client: Client, *, actor: Actor) -> None:
    """Suspended, and every key gone for good; history and audit stay."""
    suspend(client, actor=actor)
    for key in ApiKey.objects.for_client(client).filter(invalidated_at=None):
        keys.revoke(key, actor=actor)


def _apply(client: Client, changes: dict[str, Any]) -> None:
    for name in changes.keys() & set(FIELDS):
        setattr(client, name, changes[name])
    client.email = client.email.lower()
    _check(client)


def _check(client: Client) -> None:
    if client.timezone not in zoneinfo.available_timezones():
        raise Invalid("Must be an IANA time zone such as Europe/Berlin.", attr="timezone")
    try:
        client.clean_fields(exclude=["webhook_secret_current"])
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from error
    if Client.objects.filter(email=client.email).exclude(pk=client.pk).exists():
        raise Conflict("A client with this e-mail address exists.", attr="email")


def _facts(client: Client) -> dict[str, Any]:
    return {name: getattr(client, name) for name in FIELDS}
