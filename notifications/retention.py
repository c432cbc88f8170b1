"""Forgetting: the log of deliveries is kept for a while, secrets no longer than they sign."""

from __future__ import annotations

import datetime as dt

from django.db import connection
from django.utils import timezone

from notifications.models import Notice, WebhookEndpoint

KEEP_DAYS = 30
CHUNK = 5000

# Of an endpoint that is switched off nothing is sent any more, so its open ones go as well.
_PURGE = """
WITH old AS (
    SELECT d.id FROM notifications_delivery d
    JOIN notifications_webhookendpoint p ON p.id = d.endpoint_id
    WHERE d.created_at < %s
    AND (d.status NOT IN ('pending', 'retrying') OR NOT p.is_active)
    ORDER BY d.created_at LIMIT %s
    FOR UPDATE OF d SKIP LOCKED
), attempts AS (
    DELETE FROM notifications_deliveryattempt a USING old WHERE a.delivery_id = old.id
)
DELETE FROM notifications_delivery d USING old WHERE d.id = old.id
"""


def purge_deliveries(*, keep_days: int = KEEP_DAYS) -> int:
    """Delete old deliveries with their attempts, in short transactions."""
    before = timezone.now() - dt.timedelta(days=keep_days)
    total = 0
    while deleted := _purge_chunk(before):
        total += deleted
    return total


def purge_notices(*, keep_days: int = KEEP_DAYS) -> int:
    before = timezone.now() - dt.timedelta(days=keep_days)
    old = Notice.objects.filter(created_at__lt=before).exclude(status=Notice.Status.PENDING)
    return old._raw_delete(old.db)


def forget_expired_secrets() -> int:
    expired = WebhookEndpoint.objects.filter(secret_rotation_expires_at__lte=timezone.now())
    return expired.update(secret_previous="", secret_rotation_expires_at=None)


def _purge_chunk(before: dt.datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_PURGE, [before, CHUNK])
        return int(cursor.rowcount)
