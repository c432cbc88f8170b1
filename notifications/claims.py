"""Taking due deliveries from the table: by endpoint, in order for each object, under a lease."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db import connection, transaction

from common.crypto import Undecryptable
from notifications.endpoints import live_secrets
from notifications.headers import unpack
from notifications.models import WebhookEndpoint
from notifications.sending import Parcel, Target

BATCH = 200
# Longer than the longest timeout of an endpoint (30 s) with room to write the result down.
LEASE_SECONDS = 60
# What an endpoint may have of a batch, however many others wait.
SMALLEST_SHARE = 10
FAILING_BATCH = 5
HOLDING_TRIES = 4
# So many new deliveries failed one after another: the endpoint is away, one at a time asks it.
REST_AFTER = 5
# How many of an endpoint's are looked at: some wait for an older one of their object.
WINDOW = 1000
# "obsrv" and "send": claims take turns, so each sees the leases of the one before it.
CLAIM_LOCK = (0x6F627372, 0x73656E64)

_DUE = """
    d.status IN ('pending', 'retrying') AND d.next_retry_at <= statement_timestamp()
    AND (d.leased_until IS NULL OR d.leased_until <= statement_timestamp())
"""

_HAS_DUE = f"""
SELECT EXISTS (
    SELECT FROM notifications_webhookendpoint p
    WHERE p.is_active
    AND (p.resting_until IS NULL OR p.resting_until <= statement_timestamp())
    AND EXISTS (SELECT FROM notifications_delivery d WHERE d.endpoint_id = p.id AND {_DUE})
)
"""  # noqa: S608

_HAS_PACED = f"""
SELECT EXISTS (
    SELECT FROM notifications_webhookendpoint p
    WHERE p.is_active AND p.throttle_per_second IS NOT NULL
    AND p.resting_until <= statement_timestamp() + %s * interval '1 second'
    AND EXISTS (SELECT FROM notifications_delivery d WHERE d.endpoint_id = p.id AND {_DUE})
)
"""  # noqa: S608

# An older delivery of the same object goes first: while it is due, under way, or waiting
# between its first tries. Any that is under way keeps the others back.
_HELD_BACK = f"""
    SELECT FROM notifications_delivery d2
    WHERE d2.endpoint_id = d.endpoint_id AND d2.object_id = d.object_id AND d2.id <> d.id
    AND d2.status IN ('pending', 'retrying')
    AND (d2.leased_until > statement_timestamp()
         OR (d2.sequence < d.sequence
             AND (d2.attempt_number < {HOLDING_TRIES}
                  OR d2.next_retry_at <= statement_timestamp())))
"""

# The endpoints with anything open, each found by one step in the index: what ten thousand
# deliveries of a dead endpoint cost here does not depend on their number.
_OPEN_ENDPOINTS = """
    (SELECT endpoint_id AS id FROM notifications_delivery
     WHERE status IN ('pending', 'retrying') ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT endpoint_id FROM notifications_delivery
        WHERE status IN ('pending', 'retrying') AND endpoint_id > open.id
        ORDER BY endpoint_id LIMIT 1
    ) FROM open WHERE open.id IS NOT NULL
"""

_CLAIM = f"""
WITH RECURSIVE open AS ({_OPEN_ENDPOINTS}), ready AS (
    SELECT p.id, p.throttle_per_second, CASE
        WHEN p.failures_in_row >= {REST_AFTER} THEN 1
        WHEN p.failing_since IS NOT NULL THEN {FAILING_BATCH}
        ELSE LEAST(
            GREATEST(
                %(limit)s / count(*) FILTER (WHERE p.failing_since IS NULL) OVER (),
                {SMALLEST_SHARE}
            ),
            COALESCE(p.throttle_per_second, %(limit)s)
        )
    END AS share
    FROM open JOIN notifications_webhookendpoint p ON p.id = open.id
    WHERE p.is_active AND p.id <> ALL(%(busy)s)
    AND (p.resting_until IS NULL OR p.resting_until <= statement_timestamp())
), chosen AS (
    SELECT taken.id FROM ready, LATERAL (
        SELECT d.id, d.next_retry_at FROM (
            SELECT d.id, d.endpoint_id, d.object_id, d.sequence, d.next_retry_at
            FROM notifications_delivery d
            WHERE d.endpoint_id = ready.id AND {_DUE}
            ORDER BY d.next_retry_at LIMIT {WINDOW}
        ) AS d
        WHERE NOT EXISTS ({_HELD_BACK})
        ORDER BY d.next_retry_at LIMIT ready.share
    ) AS taken
    ORDER BY taken.next_retry_at LIMIT %(limit)s
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

# Whoever has taken ten of an endpoint with five a second leaves it alone for two seconds.
_PACE = """
UPDATE notifications_webhookendpoint p
SET resting_until = GREATEST(p.resting_until, statement_timestamp())
    + (v.taken::float / p.throttle_per_second) * interval '1 second'
FROM unnest(%s::uuid[], %s::int[]) AS v (id, taken)
WHERE p.id = v.id AND p.throttle_per_second IS NOT NULL
"""


def has_due() -> bool:
    """Whether an endpoint that does not rest has something due."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_DUE)
        return bool(cursor.fetchone()[0])


def has_paced(*, within_seconds: float) -> bool:
    """Whether a throttled endpoint may soon have more of what is due."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_PACED, [within_seconds])
        return bool(cursor.fetchone()[0])


def claim(*, limit: int = BATCH, busy: Collection[uuid.UUID] = ()) -> list[Parcel]:
    """Lease due deliveries of endpoints that are not busy; each carries the fence of its lease."""
    parameters: dict[str, Any] = {"busy": list(busy), "limit": limit, "lease": LEASE_SECONDS}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", CLAIM_LOCK)
        cursor.execute(_CLAIM, parameters)
        rows = cursor.fetchall()
        targets = _targets({row[3] for row in rows})
        _pace(rows, targets)
    return [
        Parcel(pk, fence, number, event_id, event_type, body.encode(), targets[endpoint_id])
        for pk, fence, number, endpoint_id, event_id, event_type, body in rows
        if endpoint_id in targets
    ]


def _targets(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Target]:
    endpoints = WebhookEndpoint.objects.select_related("client")
    try:
        return {pk: _target(endpoint) for pk, endpoint in endpoints.in_bulk(ids).items()}
    except Undecryptable as error:
        # What cannot be read must not stop what is meant for others.
        if len(ids) == 1:
            return {pk: _unreadable(pk, error) for pk in ids}
        return {pk: target for one in ids for pk, target in _targets([one]).items()}


def _unreadable(pk: uuid.UUID, error: Undecryptable) -> Target:
    plain = WebhookEndpoint.objects.only("url", "timeout_seconds").get(pk=pk)
    return Target(
        id=pk,
        url=plain.url,
        timeout_seconds=plain.timeout_seconds,
        secrets=(),
        problem=f"secret: {error}",
    )


def _target(endpoint: WebhookEndpoint) -> Target:
    return Target(
        id=endpoint.pk,
        url=endpoint.url,
        timeout_seconds=endpoint.timeout_seconds,
        secrets=tuple(live_secrets(endpoint)),
        headers=unpack(endpoint.headers),
        throttled=endpoint.throttle_per_second is not None,
    )


def _pace(rows: list[tuple[Any, ...]], targets: dict[uuid.UUID, Target]) -> None:
    taken = [row[3] for row in rows if row[3] in targets and targets[row[3]].throttled]
    if taken:
        ids = list(set(taken))
        with connection.cursor() as cursor:
            cursor.execute(_PACE, [ids, [taken.count(pk) for pk in ids]])
