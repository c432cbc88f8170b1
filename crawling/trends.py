"""What the crawler did over time, for pictures: bounded windows, one statement each."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

HOUR = dt.timedelta(hours=1)
HOURS = 24
# Requests as the politeness ledger has them, by the hour they began in.
BY_HOUR = """
    SELECT date_trunc('hour', started_at, 'UTC'),
           count(*) FILTER (WHERE error_category = '' AND NOT not_modified),
           count(*) FILTER (WHERE error_category = '' AND not_modified),
           count(*) FILTER (WHERE error_category <> ''),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY response_ms)
    FROM crawling_ledgerentry WHERE started_at >= %s GROUP BY 1
"""
PAGES_BY_HOUR = """
    SELECT date_trunc('hour', created_at, 'UTC'), sum(processed - LEAST(errors, processed)),
           sum(errors), sum(GREATEST(total - processed, 0))
    FROM crawling_crawljob WHERE created_at >= %s GROUP BY 1
"""
# Through the index of each website's jobs, however many it has had.
LAST_RUNS = """
    SELECT w.id, j.created_at, j.kind, j.status, j.processed, j.errors, j.changes
    FROM unnest(%(ids)s::uuid[]) AS w(id)
    CROSS JOIN LATERAL (
        SELECT created_at, kind, status, processed, errors, changes FROM crawling_crawljob
        WHERE website_id = w.id AND kind IN ('monitor', 'baseline')
        ORDER BY created_at DESC LIMIT %(most)s) AS j
    ORDER BY w.id, j.created_at
"""


@dataclass(frozen=True, slots=True)
class Hour:
    at: dt.datetime
    new: int = 0
    unchanged: int = 0
    failed: int = 0
    median_ms: float | None = None
    slow_ms: float | None = None


@dataclass(frozen=True, slots=True)
class JobHour:
    at: dt.datetime
    done: int = 0
    failed: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    at: dt.datetime
    kind: str
    status: str
    processed: int
    errors: int
    changes: int


def last_hours(now: dt.datetime | None = None) -> list[Hour]:
    """Each of the last 24, the oldest first, also those without a request."""
    hours = _hours(now)
    with connection.cursor() as cursor:
        cursor.execute(BY_HOUR, [hours[0]])
        found = {
            at: Hour(at, new, same, failed, *(both or (None, None)))
            for at, new, same, failed, both in cursor.fetchall()
        }
    return [found.get(at, Hour(at)) for at in hours]


def job_hours(now: dt.datetime | None = None) -> list[JobHour]:
    """Pages of the jobs that began in each of the last 24 hours."""
    hours = _hours(now)
    with connection.cursor() as cursor:
        cursor.execute(PAGES_BY_HOUR, [hours[0]])
        found = {row[0]: JobHour(row[0], *map(int, row[1:])) for row in cursor.fetchall()}
    return [found.get(at, JobHour(at)) for at in hours]


def _hours(now: dt.datetime | None) -> list[dt.datetime]:
    last = (now or timezone.now()).astimezone(dt.UTC).replace(minute=0, second=0, microsecond=0)
    return [last - HOUR * back for back in range(HOURS - 1, -1, -1)]


def last_runs(website_ids: Sequence[uuid.UUID], most: int = 30) -> dict[uuid.UUID, list[Run]]:
    """The newest runs of each website, the oldest of them first."""
    runs: dict[uuid.UUID, list[Run]] = {pk: [] for pk in website_ids}
    with connection.cursor() as cursor:
        cursor.execute(LAST_RUNS, {"ids": list(website_ids), "most": most})
        for pk, *facts in cursor.fetchall():
            runs[pk].append(Run(*facts))
    return runs
