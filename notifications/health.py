"""How endpoints accept what they are sent: of their last deliveries, never of all."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection

LAST = 200
MOST = 50_000
HEALTH = """
    SELECT x.id, h.settled, h.accepted, h.p95
    FROM unnest(%s::uuid[]) AS x (id)
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT d.id) AS settled,
               count(DISTINCT d.id) FILTER (WHERE d.status = 'success') AS accepted,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY a.duration_ms) AS p95
        FROM (
            SELECT id, status FROM notifications_delivery
            WHERE endpoint_id = x.id AND status <> 'pending'
            ORDER BY created_at DESC LIMIT %s) d
        LEFT JOIN notifications_deliveryattempt a ON a.delivery_id = d.id) h
"""
# The newest of the day: a picture of fifty thousand is as good as one of all.
BY_HOUR = """
    SELECT date_trunc('hour', created_at, 'UTC'), status, count(*)
    FROM (
        SELECT created_at, status FROM notifications_delivery
        WHERE created_at >= %s ORDER BY created_at DESC, id DESC LIMIT %s) d
    GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Health:
    """Of the deliveries that were tried at least once."""

    settled: int
    accepted: int
    p95_ms: float | None

    @property
    def success_pct(self) -> float | None:
        return round(100 * self.accepted / self.settled, 1) if self.settled else None


def health_of(ids: Collection[uuid.UUID], *, last: int = LAST) -> dict[uuid.UUID, Health]:
    with connection.cursor() as cursor:
        cursor.execute(HEALTH, [list(ids), last])
        return {pk: Health(*facts) for pk, *facts in cursor.fetchall()}


def deliveries_by_hour(since: dt.datetime) -> Counter[tuple[dt.datetime, str]]:
    with connection.cursor() as cursor:
        cursor.execute(BY_HOUR, [since, MOST])
        return Counter({(hour, status): count for hour, status, count in cursor.fetchall()})
