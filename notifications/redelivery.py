"""Sending again: one delivery, or all of a time range that a receiver has not accepted."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import Invalid, InvalidState
from common.wakeups import wake_on_commit
from notifications.catalogue import TYPES, matches
from notifications.endpoints import ask_now, refuse_inactive
from notifications.events import SENDER, lock_feeds
from notifications.models import Delivery, WebhookEndpoint
from notifications.retention import KEEP_DAYS

# As long as deliveries are kept; what is older is read with GET /events.
RANGE = dt.timedelta(days=KEEP_DAYS)
# Whoever asks for just so many days asked a moment ago.
LEEWAY = dt.timedelta(hours=1)
ABOUT_ITSELF = ("webhook.test", "webhook.disabled")

# What it failed to accept has another whole schedule before it; what waits is due at once.
_REVIVE = """
UPDATE notifications_delivery d
SET status = 'pending', attempt_number = 0, next_retry_at = %(now)s, updated_at = %(now)s
FROM notifications_event e
WHERE e.id = d.event_id AND d.endpoint_id = %(endpoint)s
AND e.client_id = %(client)s AND e.created_at >= %(since)s AND e.created_at < %(until)s
AND d.status <> 'success'
AND (d.leased_until IS NULL OR d.leased_until <= statement_timestamp())
"""

# In the database: a busy client has hundreds of thousands of events in a month.
_ADD_MISSING = """
INSERT INTO notifications_delivery (
    id, event_id, endpoint_id, object_id, sequence, status, attempt_number, next_retry_at, fence,
    last_error, created_at, updated_at
)
SELECT gen_random_uuid(), e.id, %(endpoint)s, e.object_id, e.sequence, 'pending', 0, %(now)s, 0,
    '', %(now)s, %(now)s
FROM notifications_event e
WHERE e.client_id = %(client)s AND e.created_at >= %(since)s AND e.created_at < %(until)s
AND e.type = ANY(%(types)s)
AND (%(website)s::uuid IS NULL OR e.website_id = %(website)s)
AND NOT EXISTS (
    SELECT FROM notifications_delivery d WHERE d.event_id = e.id AND d.endpoint_id = %(endpoint)s
)
"""


def redeliver(delivery: Delivery, actor: Actor) -> Delivery:
    """Send it once more, now; tries keep counting, so a spent schedule gives one try."""
    with transaction.atomic():
        delivery = (
            Delivery.objects.select_for_update(of=("self",))
            .select_related("event", "endpoint")
            .get(pk=delivery.pk)
        )
        refuse_inactive(delivery.endpoint)
        if delivery.leased_until and delivery.leased_until > timezone.now():
            raise InvalidState("It is being sent right now: look at the result first.")
        before = {"status": delivery.status}
        delivery.status = Delivery.Status.PENDING
        delivery.next_retry_at = timezone.now()
        delivery.delivered_at = None
        delivery.save()
        ask_now(delivery.endpoint)
        client_id = delivery.event.client_id
        audit.record(actor, "redeliver", delivery, client_id=client_id, before=before)
        wake_on_commit(SENDER)
    return delivery


def recover(
    endpoint: WebhookEndpoint,
    *,
    since: dt.datetime,
    until: dt.datetime | None = None,
    actor: Actor,
) -> int:
    """Send what the endpoint listens to and has not accepted, also what happened while it was
    switched off or before it was made; answers how many deliveries that is."""
    until = until or timezone.now()
    if since >= until:
        raise Invalid("The range ends before it begins.", attr="since")
    if since < timezone.now() - RANGE - LEEWAY:
        raise Invalid(
            f"Give a moment within the last {KEEP_DAYS} days; older events: GET /events.",
            attr="since",
        )
    refuse_inactive(endpoint)
    with transaction.atomic():
        # No event is written meanwhile: the range would not stand still.
        lock_feeds([endpoint.client_id])
        count = _revive(endpoint, since, until) + _add_missing(endpoint, since, until)
        ask_now(endpoint)
        after = {"since": since.isoformat(), "until": until.isoformat(), "deliveries": count}
        audit.record(actor, "recover", endpoint, client_id=endpoint.client_id, after=after)
        wake_on_commit(SENDER)
    return count


def _revive(endpoint: WebhookEndpoint, since: dt.datetime, until: dt.datetime) -> int:
    parameters: dict[str, Any] = {
        "now": timezone.now(),
        "endpoint": endpoint.pk,
        "client": endpoint.client_id,
        "since": since,
        "until": until,
    }
    with connection.cursor() as cursor:
        cursor.execute(_REVIVE, parameters)
        return int(cursor.rowcount)


def _add_missing(endpoint: WebhookEndpoint, since: dt.datetime, until: dt.datetime) -> int:
    heard = [name for name in TYPES if matches(endpoint.events, name) and name not in ABOUT_ITSELF]
    parameters: dict[str, Any] = {
        "now": timezone.now(),
        "endpoint": endpoint.pk,
        "client": endpoint.client_id,
        "website": endpoint.website_id,
        "types": heard,
        "since": since,
        "until": until,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ADD_MISSING, parameters)
        return int(cursor.rowcount)
