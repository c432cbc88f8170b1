"""The politeness ledger: every request to a shop, the gap it kept and the rule it kept it by.

Gathered in memory by the slice and copied in batches; what a worker that is killed had
gathered in its last seconds is lost with it.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from common.ids import uuid7
from crawling.models import Domain, LedgerEntry
from crawling.pacing import Turn

BATCH = 500
BATCH_SECONDS = 2.0
KEEP = dt.timedelta(days=7)
# The clock's own fineness; gaps are measured, not computed.
TOLERANCE_SECONDS = 0.001
# Two workers that follow each other are compared by the wall clock, which is corrected.
WALL_TOLERANCE_SECONDS = 0.05
COLUMNS = (
    "id",
    "domain_id",
    "task_id",
    "proxy_id",
    "url",
    "started_at",
    "gap_seconds",
    "wanted_gap_seconds",
    "rule",
    "http_status",
    "bytes",
    "response_ms",
    "not_modified",
    "error_category",
)
COPY = f"COPY crawling_ledgerentry ({', '.join(COLUMNS)}) FROM STDIN"
BROKEN = """
    SELECT url, started_at, rule, wanted_gap_seconds, gap_seconds, since_before
    FROM (
        SELECT l.*, extract(epoch FROM started_at - lag(started_at) OVER (
            ORDER BY started_at, id))::float8 AS since_before
        FROM crawling_ledgerentry l WHERE domain_id = %s) entries
    WHERE gap_seconds < wanted_gap_seconds - %s OR since_before < wanted_gap_seconds - %s
    ORDER BY started_at
"""


@dataclass(frozen=True, slots=True)
class Answered:
    """How the request of a turn ended."""

    http_status: int | None = None
    bytes: int | None = None
    response_ms: int | None = None
    error_category: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """A request that came too early."""

    url: str
    started_at: dt.datetime
    rule: str
    wanted_gap_seconds: float
    gap_seconds: float | None
    since_before_seconds: float | None


class Ledger:
    """What a slice has asked and not yet written down."""

    def __init__(self) -> None:
        self._is_kept = bool(settings.CRAWL_LEDGER)
        self._rows: list[tuple[Any, ...]] = []
        self._since = time.monotonic()

    def note(
        self,
        domain: Domain,
        url: str,
        turn: Turn,
        answered: Answered,
        *,
        task_id: uuid.UUID | None = None,
        proxy_id: uuid.UUID | None = None,
    ) -> None:
        if not self._is_kept:
            return
        if not self._rows:
            self._since = time.monotonic()
        self._rows.append(
            (
                uuid7(),
                domain.id,
                task_id,
                proxy_id,
                url[:2048],
                turn.started_at,
                turn.gap_seconds,
                turn.wanted_gap_seconds,
                turn.rule,
                answered.http_status,
                answered.bytes,
                answered.response_ms,
                answered.http_status == 304,
                answered.error_category,
            )
        )

    @property
    def is_due(self) -> bool:
        old = bool(self._rows) and time.monotonic() - self._since >= BATCH_SECONDS
        return old or len(self._rows) >= BATCH

    def take(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows, []
        return rows


def write(rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for row in rows:
            copy.write_row(row)


def broken_gaps(domain: Domain) -> list[Broken]:
    """Requests that came earlier than their rule allowed, by the pace's own measure or by
    the time since the request before, whoever made it."""
    with connection.cursor() as cursor:
        cursor.execute(BROKEN, [domain.pk, TOLERANCE_SECONDS, WALL_TOLERANCE_SECONDS])
        return [Broken(*row) for row in cursor.fetchall()]


def purge() -> int:
    old = LedgerEntry.objects.filter(started_at__lt=timezone.now() - KEEP)
    return old._raw_delete(old.db)
