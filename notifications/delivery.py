"""Deliveries: claimed from the table, sent, and the results written back in batches.

A process may die anywhere: what was sent and not written is sent again, with the same id.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Collection, Sequence
from typing import Any, cast

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from notifications.endpoints import disable_endpoint, live_secrets
from notifications.models import Delivery, DeliveryAttempt, WebhookEndpoint
from notifications.retries import Verdict, judge
from notifications.sending import Outcome, Parcel, Sender, Target

BATCH = 200
# Longer than the longest timeout of an endpoint (30 s) with room to write the result down.
LEASE_SECONDS = 60
POOL = 1000
# An endpoint with so many under way gets no more, so that a slow one leaves room for others.
ENDPOINT_BUSY = 100
FAILING_BATCH = 5
HOLDING_TRIES = 4
COLLECT_SECONDS = 0.05
DISABLE_AFTER = dt.timedelta(days=5)
DISABLE_TRIES = 10
# "obsrv" and "send": claims take turns, so each sees the leases of the one before it.
CLAIM_LOCK = (0x6F627372, 0x73656E64)

_OPEN = "d.status IN ('pending', 'retrying')"
_FREE = "(d.leased_until IS NULL OR d.leased_until <= statement_timestamp())"
_DUE = f"{_OPEN} AND {_FREE} AND d.next_retry_at <= statement_timestamp()"

_HAS_DUE = f"""
SELECT EXISTS (
    SELECT FROM notifications_delivery d
    JOIN notifications_webhookendpoint p ON p.id = d.endpoint_id AND p.is_active
    WHERE {_DUE}
)
"""  # noqa: S608

# An older delivery of the same object goes first: while it is due, under way, or waiting
# between its first tries. Any that is under way keeps the others back.
_HELD_BACK = f"""
    SELECT FROM notifications_event e2
    JOIN notifications_delivery d2 ON d2.event_id = e2.id AND d2.endpoint_id = d.endpoint_id
    WHERE e2.object_id = e.object_id AND d2.id <> d.id
    AND d2.status IN ('pending', 'retrying')
    AND (d2.leased_until > statement_timestamp()
         OR (e2.sequence < e.sequence
             AND (d2.attempt_number < {HOLDING_TRIES}
                  OR d2.next_retry_at <= statement_timestamp())))
"""

_CLAIM = f"""
WITH due AS (
    SELECT d.id, d.endpoint_id, d.next_retry_at, p.failing_since
    FROM notifications_delivery d
    JOIN notifications_webhookendpoint p ON p.id = d.endpoint_id AND p.is_active
    JOIN notifications_event e ON e.id = d.event_id
    WHERE {_DUE} AND d.endpoint_id <> ALL(%(busy)s) AND NOT EXISTS ({_HELD_BACK})
    ORDER BY d.next_retry_at LIMIT %(window)s
), queued AS (
    SELECT *, row_number() OVER (PARTITION BY endpoint_id ORDER BY next_retry_at) AS place
    FROM due
), chosen AS (
    SELECT id FROM queued
    WHERE place <= CASE WHEN failing_since IS NULL THEN %(limit)s ELSE {FAILING_BATCH} END
    ORDER BY next_retry_at LIMIT %(limit)s
), locked AS (
    SELECT d.id FROM notifications_delivery d
    WHERE d.id IN (SELECT id FROM chosen) AND {_DUE}
    FOR UPDATE SKIP LOCKED
)
UPDATE notifications_delivery d
SET fence = d.fence + 1,
    leased_until = statement_timestamp() + %(lease)s * interval '1 second'
FROM locked, notifications_event e
WHERE d.id = locked.id AND e.id = d.event_id
RETURNING d.id, d.fence, d.attempt_number + 1, d.endpoint_id, e.id, e.type, e.body
"""  # noqa: S608

_SETTLE = """
UPDATE notifications_delivery d
SET status = v.status,
    attempt_number = v.number,
    next_retry_at = statement_timestamp() + v.delay * interval '1 second',
    leased_until = NULL,
    last_http_status = v.http_status,
    last_error = v.error,
    delivered_at = CASE WHEN v.status = 'success' THEN statement_timestamp() END,
    updated_at = statement_timestamp()
FROM unnest(
    %s::uuid[], %s::int[], %s::text[], %s::int[], %s::float[], %s::int[], %s::text[]
) AS v (id, fence, status, number, delay, http_status, error)
WHERE d.id = v.id AND d.fence = v.fence
"""

# What must wait for a failed one is due when that one is: a claim would otherwise look at
# all that is held back, each time, and there may be a hundred thousand of them.
_PARK = f"""
UPDATE notifications_delivery d
SET next_retry_at = stuck.next_retry_at
FROM notifications_delivery stuck
JOIN notifications_event se ON se.id = stuck.event_id
JOIN notifications_event e ON e.object_id = se.object_id AND e.sequence > se.sequence
WHERE stuck.id = ANY(%s) AND stuck.status = 'retrying' AND stuck.attempt_number < {HOLDING_TRIES}
AND d.event_id = e.id AND d.endpoint_id = stuck.endpoint_id
AND {_OPEN} AND d.next_retry_at < stuck.next_retry_at
"""  # noqa: S608


def deliver_due(max_seconds: float = 20) -> int:
    """Send what is due until nothing is left or time is up; answers how many tries were made."""
    if not has_due():
        return 0
    deadline = time.monotonic() + max_seconds
    tries = 0
    with Sender(connections=POOL) as sender:
        while True:
            if time.monotonic() < deadline:
                _refill(sender)
            if not sender.in_flight:
                return tries
            tries += _settle(sender)


def has_due() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_HAS_DUE)
        return bool(cursor.fetchone()[0])


def claim(*, limit: int = BATCH, busy: Collection[uuid.UUID] = ()) -> list[Parcel]:
    """Lease due deliveries of endpoints that are not busy; each carries the fence of its lease."""
    parameters: dict[str, Any] = {
        "busy": list(busy),
        "limit": limit,
        "window": limit * 5,
        "lease": LEASE_SECONDS,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", CLAIM_LOCK)
        cursor.execute(_CLAIM, parameters)
        rows = cursor.fetchall()
    return _parcels(rows)


def record(outcomes: Sequence[Outcome]) -> None:
    """Write a batch of outcomes; one whose lease was lost leaves only its log line."""
    now = timezone.now()
    verdicts = [_judge(outcome, now) for outcome in outcomes]
    with transaction.atomic():
        existing = _lock(outcomes)
        _write(outcomes, verdicts)
        _park([outcome.parcel.delivery_id for outcome in outcomes if not outcome.succeeded])
        DeliveryAttempt.objects.bulk_create(
            _attempt(outcome) for outcome in outcomes if outcome.parcel.delivery_id in existing
        )
        failing = _note_health(outcomes, now)
    _disable(outcomes, verdicts, failing)


def _refill(sender: Sender) -> None:
    room = POOL - sender.in_flight.total()
    if room < BATCH:
        return
    busy = [pk for pk, count in sender.in_flight.items() if count >= ENDPOINT_BUSY]
    parcels = claim(busy=busy)
    if parcels:
        sender.submit(parcels)


def _settle(sender: Sender) -> int:
    outcomes = sender.collect(wait_seconds=COLLECT_SECONDS, limit=BATCH)
    if outcomes:
        record(outcomes)
    return len(outcomes)


def _parcels(rows: list[tuple[Any, ...]]) -> list[Parcel]:
    endpoints = WebhookEndpoint.objects.select_related("client")
    targets = {
        pk: Target(pk, endpoint.url, endpoint.timeout_seconds, tuple(live_secrets(endpoint)))
        for pk, endpoint in endpoints.in_bulk({row[3] for row in rows}).items()
    }
    return [
        Parcel(pk, fence, number, event_id, event_type, body.encode(), targets[endpoint_id])
        for pk, fence, number, endpoint_id, event_id, event_type, body in rows
        if endpoint_id in targets
    ]


def _judge(outcome: Outcome, now: dt.datetime) -> Verdict:
    return judge(
        number=outcome.parcel.number,
        http_status=outcome.http_status,
        retry_after=outcome.retry_after,
        schedule=settings.WEBHOOK_RETRY_SECONDS,
        now=now,
    )


def _lock(outcomes: Sequence[Outcome]) -> set[uuid.UUID]:
    """The deliveries that still exist: their endpoint may have been deleted meanwhile."""
    ids = [outcome.parcel.delivery_id for outcome in outcomes]
    rows = Delivery.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    return set(rows.values_list("pk", flat=True))


def _write(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> None:
    parcels = [outcome.parcel for outcome in outcomes]
    columns: list[Any] = [
        [parcel.delivery_id for parcel in parcels],
        [parcel.fence for parcel in parcels],
        [verdict.status.value for verdict in verdicts],
        [parcel.number for parcel in parcels],
        [verdict.delay_seconds for verdict in verdicts],
        [outcome.http_status for outcome in outcomes],
        [outcome.error for outcome in outcomes],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, columns)


def _park(failed: list[uuid.UUID]) -> None:
    if failed:
        with connection.cursor() as cursor:
            cursor.execute(_PARK, [cast(Any, failed)])


def _attempt(outcome: Outcome) -> DeliveryAttempt:
    return DeliveryAttempt(
        delivery_id=outcome.parcel.delivery_id,
        number=outcome.parcel.number,
        attempted_at=outcome.attempted_at,
        signature_header=outcome.signature,
        status_code=outcome.http_status,
        duration_ms=outcome.duration_ms,
        response_body=outcome.response_body,
        error=outcome.error,
    )


def _note_health(outcomes: Sequence[Outcome], now: dt.datetime) -> list[WebhookEndpoint]:
    """Keep since when an endpoint only fails; answers those that failed in this batch."""
    tried = {outcome.parcel.target.id for outcome in outcomes}
    well = {outcome.parcel.target.id for outcome in outcomes if outcome.succeeded}
    endpoints = WebhookEndpoint.objects.order_by("pk")
    recovered = endpoints.filter(pk__in=well, failing_since__isnull=False)
    fallen = endpoints.filter(pk__in=tried - well, failing_since=None)
    for rows, since in ((recovered, None), (fallen, now)):
        # Locked in one order: two senders may meet on the same endpoints.
        ids = list(rows.select_for_update(no_key=True).values_list("pk", flat=True))
        if ids:
            WebhookEndpoint.objects.filter(pk__in=ids).update(failing_since=since)
    return list(endpoints.filter(pk__in=tried - well, failing_since__lte=now - DISABLE_AFTER))


def _disable(
    outcomes: Sequence[Outcome], verdicts: Sequence[Verdict], failing: list[WebhookEndpoint]
) -> None:
    reasons = {
        outcome.parcel.target.id: verdict.disable_reason
        for outcome, verdict in zip(outcomes, verdicts, strict=True)
        if verdict.disable_reason
    }
    for endpoint in failing:
        if _tries_since(endpoint) >= DISABLE_TRIES:
            reasons.setdefault(endpoint.pk, "Nothing but failures for five days.")
    for endpoint_id, reason in reasons.items():
        disable_endpoint(endpoint_id, reason=reason)


def _tries_since(endpoint: WebhookEndpoint) -> int:
    tries = DeliveryAttempt.objects.filter(
        delivery__endpoint=endpoint, attempted_at__gte=endpoint.failing_since
    )
    return tries[:DISABLE_TRIES].count()
