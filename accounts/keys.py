"""API keys: 256 random bits, shown once; the database keeps a digest, looked up by its index."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import secrets
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from accounts.models import ApiKey, Client
from common.drf.principals import allows
from common.errors import Invalid, InvalidState, Refused

START = "obsrv_live_"
FORM = re.compile(START + r"[A-Za-z0-9_-]{43}")
USE_NOTED_EVERY = dt.timedelta(minutes=1)
DEFAULT_RPM = 60


class NotGrantable(Refused):
    code = "FORBIDDEN"


def new_plaintext() -> str:
    return START + secrets.token_urlsafe(32)


def digest_of(plaintext: str) -> str:
    """A fast hash is right here: nobody guesses 256 random bits."""
    return hashlib.sha256(plaintext.encode()).hexdigest()


def prefix_of(plaintext: str) -> str:
    return plaintext.removeprefix(START)[:8]


def find(plaintext: str) -> ApiKey | None:
    """The live key with this text, by one indexed look-up; a suspended client's is found too."""
    if not FORM.fullmatch(plaintext):
        return None
    rows = ApiKey.objects.select_related("client")
    key = rows.filter(digest=digest_of(plaintext)).first()
    return key if key is not None and key.is_live else None


def note_use(key: ApiKey) -> None:
    """At most one write a minute, however many requests come in at once."""
    now = timezone.now()
    if key.last_used_at is not None and key.last_used_at > now - USE_NOTED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


@transaction.atomic
def issue(
    *,
    client: Client | None,
    name: str,
    scopes: Collection[str],
    actor: Actor,
    expires_at: dt.datetime | None = None,
    rate_limit_rpm: int = DEFAULT_RPM,
    issuer: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which is never seen again; without a client an operator's key."""
    _check_grant(issuer, scopes=scopes, rate_limit_rpm=rate_limit_rpm)
    plaintext = new_plaintext()
    key = ApiKey(
        client=client,
        name=name,
        digest=digest_of(plaintext),
        prefix=prefix_of(plaintext),
        scopes=_ordered(scopes),
        expires_at=_future(expires_at),
        rate_limit_rpm=rate_limit_rpm,
    )
    key.save()
    audit.record(actor, "issue", key, client_id=key.client_id, after=_facts(key))
    return key, plaintext


@transaction.atomic
def update(
    key: ApiKey, changes: dict[str, Any], *, actor: Actor, issuer: ApiKey | None = None
) -> ApiKey:
    """Change name, scopes, rate or expiry of a live key."""
    key = _locked_live(key)
    _check_grant(issuer, scopes=changes.get("scopes"), rate_limit_rpm=changes.get("rate_limit_rpm"))
    if "scopes" in changes:
        changes = changes | {"scopes": _ordered(changes["scopes"])}
    if "expires_at" in changes:
        _future(changes["expires_at"])
    before = _facts(key)
    for name in changes.keys() & {"name", "scopes", "rate_limit_rpm", "expires_at"}:
        setattr(key, name, changes[name])
    key.save()
    audit.record(actor, "update", key, client_id=key.client_id, before=before, after=_facts(key))
    return key


@transaction.atomic
def rotate(key: ApiKey, *, actor: Actor) -> tuple[ApiKey, str]:
    """A new text for the same key; the old text stops working at once."""
    key = _locked_live(key)
    before = {"prefix": key.prefix}
    plaintext = new_plaintext()
    key.digest, key.prefix = digest_of(plaintext), prefix_of(plaintext)
    key.save(update_fields=["digest", "prefix", "updated_at"])
    audit.record(
        actor, "rotate", key, client_id=key.client_id, before=before, after={"prefix": key.prefix}
    )
    return key, plaintext


@transaction.atomic
def revoke(key: ApiKey, *, actor: Actor) -> None:
    """Works from the next request on; revoking twice is revoking once."""
    now = timezone.now()
    if ApiKey.objects.filter(pk=key.pk, invalidated_at=None).update(
        invalidated_at=now, updated_at=now
    ):
        audit.record(actor, "revoke", key, client_id=key.client_id)


def _locked_live(key: ApiKey) -> ApiKey:
    locked = ApiKey.objects.select_for_update().get(pk=key.pk)
    if not locked.is_live:
        raise InvalidState("The key is revoked or expired; only live keys can be changed.")
    return locked


def _check_grant(
    issuer: ApiKey | None, *, scopes: Collection[str] | None, rate_limit_rpm: int | None
) -> None:
    """A client's key hands on at most what it has itself; operators are not bound."""
    if issuer is None or issuer.client_id is None:
        return
    beyond = [scope for scope in scopes or () if not allows(issuer.scopes, scope)]
    if beyond:
        raise NotGrantable(f"This key cannot grant {', '.join(beyond)}.", attr="scopes")
    if rate_limit_rpm is not None and rate_limit_rpm > issuer.rate_limit_rpm:
        raise NotGrantable(
            f"This key cannot grant more than {issuer.rate_limit_rpm} requests a minute.",
            attr="rate_limit_rpm",
        )


def _ordered(scopes: Collection[str]) -> list[str]:
    """Known, without doubles, from read to admin."""
    if not scopes or set(scopes) - set(ApiKey.Scope.values):
        raise Invalid(f"Name some of {', '.join(ApiKey.Scope.values)}.", attr="scopes")
    return [scope for scope in ApiKey.Scope.values if scope in scopes]


def _future(expires_at: dt.datetime | None) -> dt.datetime | None:
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("Must be in the future.", attr="expires_at")
    return expires_at


def _facts(key: ApiKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        "rate_limit_rpm": key.rate_limit_rpm,
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
    }
