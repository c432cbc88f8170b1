"""Sending again: one delivery, or all of a time range that a receiver has not accepted."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import Invalid, InvalidState
from common.ids import uuid7
from common.wakeups import wake_on_commit
from notifications.catalogue import TYPES, matches
from notifications.endpoints import ask_now, refuse_inactive
from notifications.events import SENDER, lock_feeds
from notifications.models import Delivery, Event, WebhookEndpoint

CHUNK = 1000

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
    heard = [name for name in TYPES if matches(endpoint.events, name)]
    events = Event.objects.filter(
        client_id=endpoint.client_id, created_at__gte=since, created_at__lt=until, type__in=heard
    ).exclude(type__in=["webhook.test", "webhook.disabled"])
    if endpoint.website_id:
        events = events.filter(website_id=endpoint.website_id)
    missing = events.exclude(deliveries__endpoint=endpoint).order_by("sequence")
    now, count = timezone.now(), 0
    found = list(missing.values_list("pk", "object_id", "sequence"))
    for start in range(0, len(found), CHUNK):
        rows = [
            Delivery(
                id=uuid7(),
                event_id=pk,
                endpoint=endpoint,
                object_id=object_id,
                sequence=sequence,
                next_retry_at=now,
            )
            for pk, object_id, sequence in found[start : start + CHUNK]
        ]
        count += len(Delivery.objects.bulk_create(rows))
    return count
