"""Webhook signing secrets: during a rotation's grace both sign, so no receiver misses a beat."""

from __future__ import annotations

import base64
import datetime as dt
import secrets

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from accounts.models import Client
from common.crypto import Undecryptable
from common.errors import Invalid

MAX_GRACE_SECONDS = 86_400
DEFAULT_GRACE_SECONDS = 3_600


def new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@transaction.atomic
def rotate(client: Client, *, grace_seconds: int = DEFAULT_GRACE_SECONDS, actor: Actor) -> str:
    """A new secret, shown once; the one before signs along for the grace period."""
    if not 0 <= grace_seconds <= MAX_GRACE_SECONDS:
        raise Invalid(f"Must be 0 to {MAX_GRACE_SECONDS}.", attr="grace_seconds")
    locked = Client.objects.select_for_update().get(pk=client.pk)
    secret = new_secret()
    expires_at = timezone.now() + dt.timedelta(seconds=grace_seconds) if grace_seconds else None
    locked.webhook_secret_previous = _signed_until_now(locked) if grace_seconds else ""
    locked.webhook_secret_current = secret
    locked.secret_rotation_expires_at = expires_at
    locked.save()
    audit.record(
        actor,
        "rotate_webhook_secret",
        locked,
        client_id=locked.pk,
        after={"grace_seconds": grace_seconds},
    )
    client.refresh_from_db()
    return secret


def _signed_until_now(client: Client) -> str:
    try:
        return str(client.webhook_secret_current)
    except Undecryptable:
        # Nothing was signed with what cannot be read.
        return ""


def drop_expired() -> int:
    """Forget secrets whose grace is over; answers how many."""
    over = Client.objects.filter(secret_rotation_expires_at__lte=timezone.now())
    return over.update(webhook_secret_previous="", secret_rotation_expires_at=None)
