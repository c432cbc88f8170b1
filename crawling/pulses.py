"""The last requests of domains and proxies, as people see them: well or not, and how fast."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection

LAST = 20
# For each of them its own few, by the index: never a walk through the ledger.
BY_COLUMN = """
    SELECT x.id, l.started_at, l.http_status, l.response_ms, l.error_category
    FROM unnest(%s::uuid[]) AS x (id)
    CROSS JOIN LATERAL (
        SELECT started_at, http_status, response_ms, error_category
        FROM crawling_ledgerentry WHERE {column} = x.id
        ORDER BY started_at DESC LIMIT %s) l
    ORDER BY l.started_at
"""
OF_DOMAIN = BY_COLUMN.format(column="domain_id")
OF_PROXY = BY_COLUMN.format(column="proxy_id")


@dataclass(frozen=True, slots=True)
class Beat:
    """One request."""

    at: dt.datetime
    http_status: int | None
    response_ms: int | None
    error: str

    @property
    def tone(self) -> str:
        """As the plots name it."""
        status = self.http_status
        if status is None:
            return "bad" if self.error else "quiet"
        if status < 400:
            return "good"
        return "warn" if status in (404, 410) else "bad"

    @property
    def told(self) -> str:
        said = f"HTTP {self.http_status}" if self.http_status else self.error or "no answer"
        took = f", {self.response_ms} ms" if self.response_ms is not None else ""
        return f"{self.at:%Y-%m-%d %H:%M:%S} UTC: {said}{took}"


def of_domains(ids: Collection[uuid.UUID], *, last: int = LAST) -> dict[uuid.UUID, list[Beat]]:
    """The oldest first."""
    return _read(OF_DOMAIN, ids, last)


def of_proxies(ids: Collection[uuid.UUID], *, last: int = LAST) -> dict[uuid.UUID, list[Beat]]:
    return _read(OF_PROXY, ids, last)


def _read(statement: str, ids: Collection[uuid.UUID], last: int) -> dict[uuid.UUID, list[Beat]]:
    found: dict[uuid.UUID, list[Beat]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(ids), last])
        for pk, *facts in cursor.fetchall():
            found[pk].append(Beat(*facts))
    return found
