"""The audit log: who changed what, written in the transaction of the change."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from accounts.models import ApiKey, AuditEntry, User
from common.requests import current_request_id


@dataclass(frozen=True)
class Actor:
    """Who acts, as far as the log must know."""

    kind: str
    id: uuid.UUID | None
    name: str

    @classmethod
    def operator(cls, user: User) -> Actor:
        return cls(AuditEntry.Actor.OPERATOR, user.pk, user.get_username())

    @classmethod
    def key(cls, key: ApiKey) -> Actor:
        return cls(AuditEntry.Actor.KEY, key.pk, str(key))


SYSTEM = Actor(AuditEntry.Actor.SYSTEM, None, "system")


def record(
    actor: Actor,
    verb: str,
    target: Model,
    *,
    client_id: uuid.UUID | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Call inside the transaction of the change; never pass secrets."""
    entry = _entry(actor, verb, target, client_id, before, after)
    entry.save(force_insert=True)
    return entry


def record_many(
    actor: Actor,
    verb: str,
    targets: Sequence[Model],
    *,
    client_id: uuid.UUID | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """One entry each, in one statement."""
    AuditEntry.objects.bulk_create(
        [_entry(actor, verb, target, client_id, before, after) for target in targets],
        batch_size=1000,
    )


def _entry(
    actor: Actor,
    verb: str,
    target: Model,
    client_id: uuid.UUID | None,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> AuditEntry:
    return AuditEntry(
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name[:255],
        client_id=client_id,
        verb=verb,
        object_type=target._meta.label_lower,
        object_id=str(target.pk),
        object_name=str(target)[:255],
        before=before or {},
        after=after or {},
        request_id=current_request_id(),
    )
