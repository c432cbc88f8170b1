"""Which event told a client of a change, and whether it arrived; telling it once more."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from accounts.audit import Actor
from common.errors import InvalidState, Refused
from monitoring.models import Change
from notifications import redelivery
from notifications.models import Delivery

# The event names its change; events of these products from the time of these changes on.
TOLD = """
    SELECT told.change_id, told.id, told.type, count(d.id),
           count(d.id) FILTER (WHERE d.status = 'success')
    FROM (
        SELECT id, type, (body::jsonb #>> '{data,change,id}')::uuid AS change_id
        FROM notifications_event
        WHERE object_id = ANY(%(products)s) AND created_at >= %(since)s AND created_at <= %(until)s
          AND type LIKE 'product.%%' OFFSET 0
    ) AS told
    LEFT JOIN notifications_delivery d ON d.event_id = told.id
    WHERE told.change_id = ANY(%(changes)s)
    GROUP BY 1, 2, 3
"""
# An event is written with its change, or by the second look that confirms it.
LATEST = dt.timedelta(days=2)
CLOCKS = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Told:
    event_id: uuid.UUID
    type: str
    deliveries: int
    delivered: int


def events_of(changes: Sequence[Change]) -> dict[uuid.UUID, Told]:
    """By change; those that nobody was told of on their own are left out."""
    if not changes:
        return {}
    times = [change.occurred_at for change in changes]
    found: dict[uuid.UUID, Told] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            TOLD,
            {
                "products": list({change.product_id for change in changes}),
                "changes": [change.pk for change in changes],
                "since": min(times) - CLOCKS,
                "until": max(times) + LATEST,
            },
        )
        for change_id, *facts in cursor.fetchall():
            found[change_id] = Told(*facts)
    return found


@transaction.atomic
def replay(change: Change, *, actor: Actor) -> int:
    """Send its event once more to every endpoint it went to; answers how many those are."""
    told = events_of([change]).get(change.pk)
    if told is None:
        raise InvalidState("Nobody was told of this change on its own: there is no event.")
    deliveries = Delivery.objects.filter(event_id=told.event_id).order_by("id")
    sent, refusal = 0, "No endpoint listens to it: there is nothing to send again."
    for delivery in deliveries:
        try:
            redelivery.redeliver(delivery, actor)
        except Refused as refused:
            refusal = refused.detail
        else:
            sent += 1
    if not sent:
        raise InvalidState(refusal)
    return sent
