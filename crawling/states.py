"""The only place that moves a crawl task from one state to another."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from django.db import connection
from django.db.models import QuerySet

from crawling.models import CrawlTask

Status = CrawlTask.Status


def advance(tasks: QuerySet[CrawlTask], to: str, **fields: Any) -> int:
    """Move those that may; answers how many did. Compare-and-set: a task that is
    elsewhere by now stays there."""
    return tasks.filter(status__in=CrawlTask.MOVES[to]).update(status=to, **fields)


CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT found.id, found.deaths
        FROM unnest(%s::uuid[], %s::int[]) AS wanted(domain_id, capacity)
        CROSS JOIN LATERAL (
            SELECT c.id, c.claims AS deaths FROM crawling_crawltask c
            WHERE c.domain_id = wanted.domain_id AND c.status IN ('pending', 'queued')
              AND c.scheduled_at <= statement_timestamp()
            ORDER BY c.priority, c.score DESC, c.depth, c.scheduled_at
            LIMIT wanted.capacity
            FOR UPDATE SKIP LOCKED) found),
    claimed AS (
        UPDATE crawling_crawltask t
        SET status = 'crawling', leased_until = statement_timestamp() + %s,
            fence = t.fence + 1, claims = greatest(t.claims, 1)
        FROM due WHERE t.id = due.id AND t.status IN ('pending', 'queued')
        RETURNING t.*, due.deaths)
    SELECT {columns} FROM claimed ORDER BY priority, score DESC, depth, scheduled_at
"""


def claim_due(
    wanted: Mapping[uuid.UUID, int], columns: Iterable[str], *, lease: dt.timedelta
) -> list[tuple[Any, ...]]:
    """Take due tasks of these domains, up to so many of each, in one statement."""
    with connection.cursor() as cursor:
        statement = CLAIM.format(columns=", ".join(columns))
        values: list[Any] = [list(wanted.keys()), list(wanted.values()), lease]
        cursor.execute(statement, values)
        return list(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one try of a claimed task ended; the fields are columns of the task."""

    id: uuid.UUID
    status: str
    scheduled_at: dt.datetime | None
    retry_count: int
    error_category: str
    error_message: str
    http_status: int | None
    response_time_ms: int | None
    bytes: int | None
    final_url: str
    completed_at: dt.datetime | None
    fetched_at: dt.datetime
    from_cache: bool
    stored_page_id: uuid.UUID | None
    proxy_id: uuid.UUID | None


SETTLE = """
    UPDATE crawling_crawltask t SET
        status = v.status, scheduled_at = coalesce(v.scheduled_at, t.scheduled_at),
        retry_count = v.retry_count, error_category = v.error_category,
        error_message = v.error_message, http_status = v.http_status,
        response_time_ms = v.response_time_ms, bytes = v.bytes, final_url = v.final_url,
        completed_at = v.completed_at, fetched_at = v.fetched_at, from_cache = v.from_cache,
        stored_page_id = coalesce(v.stored_page_id, t.stored_page_id),
        proxy_id = (SELECT p.id FROM crawling_proxy p WHERE p.id = v.proxy_id),
        leased_until = NULL, claims = 0, updated_at = now()
    FROM json_to_recordset(%s::json)
        AS v(id uuid, status text, scheduled_at timestamptz, retry_count int,
             error_category text, error_message text, http_status int, response_time_ms int,
             bytes int, final_url text, completed_at timestamptz, fetched_at timestamptz,
             from_cache bool, stored_page_id uuid, proxy_id uuid)
    WHERE t.id = v.id AND t.status IN ('crawling', 'parsing')
"""


LOCK_CLAIMED = """
    SELECT t.id FROM crawling_crawltask t
    JOIN json_to_recordset(%s::json) AS v(id uuid, fence int) ON t.id = v.id AND t.fence = v.fence
    WHERE t.status IN ('crawling', 'parsing') ORDER BY t.id FOR UPDATE OF t
"""


class Fenced(Protocol):
    """A claim, as far as its fence goes."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def fence(self) -> int: ...


def as_json(claims: Iterable[Fenced]) -> str:
    """Ids and fences as one text: a list of each takes ten times as long to write out."""
    return orjson.dumps([{"id": claim.id, "fence": claim.fence} for claim in claims]).decode()


def lock_claimed(claims: Iterable[Fenced]) -> set[uuid.UUID]:
    """Lock the tasks whose claim still holds; a lost fence is not among them."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_CLAIMED, [as_json(claims)])
        return {row[0] for row in cursor.fetchall()}


def settle(settlements: Sequence[Settlement]) -> None:
    """End the tries of tasks locked by ``lock_claimed``, all in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(SETTLE, [orjson.dumps(settlements).decode()])
