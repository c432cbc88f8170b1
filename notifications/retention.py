"""Forgetting: events and the log of deliveries are kept for a while, secrets no longer than they
sign."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db import connection
from django.utils import timezone

from notifications.models import Channel, Notice, WebhookEndpoint

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

_PURGE_EVENTS = """
WITH old AS (
    SELECT e.id FROM notifications_event e
    WHERE e.created_at < %s
    AND NOT EXISTS (SELECT FROM notifications_delivery d WHERE d.event_id = e.id)
    AND NOT EXISTS (SELECT FROM notifications_notice n WHERE n.event_id = e.id)
    ORDER BY e.created_at LIMIT %s
)
DELETE FROM notifications_event e USING old WHERE e.id = old.id
"""


def purge_events() -> int:
    """Delete old events that nobody is still told of, in short transactions."""
    before = timezone.now() - dt.timedelta(days=settings.EVENT_RETENTION_DAYS)
    return _purge(_PURGE_EVENTS, before)


def purge_deliveries(*, keep_days: int = KEEP_DAYS) -> int:
    """Delete old deliveries with their attempts, in short transactions."""
    return _purge(_PURGE, timezone.now() - dt.timedelta(days=keep_days))


def purge_notices(*, keep_days: int = KEEP_DAYS) -> int:
    """Delete old notices, but for those that a channel that is on is still to be told."""
    before = timezone.now() - dt.timedelta(days=keep_days)
    old = Notice.objects.filter(created_at__lt=before).exclude(
        status=Notice.Status.PENDING, channel__in=Channel.objects.filter(is_active=True)
    )
    return old._raw_delete(old.db)


def forget_expired_secrets() -> int:
    expired = WebhookEndpoint.objects.filter(secret_rotation_expires_at__lte=timezone.now())
    return expired.update(secret_previous="", secret_rotation_expires_at=None)


def _purge(statement: str, before: dt.datetime) -> int:
    total = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(statement, [before, CHUNK])
            if not cursor.rowcount:
                return total
            total += cursor.rowcount
