"""Old tasks and jobs go, a batch at a time, so that no lock is held for long."""

from __future__ import annotations

import datetime as dt

from django.db import connection

BATCH = 5_000
TASKS = """
    WITH old AS (
        SELECT id FROM crawling_crawltask
        WHERE created_at < %s AND status IN ('completed', 'failed', 'cancelled')
          AND NOT is_recurring
        ORDER BY created_at LIMIT %s),
    errors AS (DELETE FROM crawling_crawlerror WHERE task_id IN (SELECT id FROM old)),
    children AS (
        UPDATE crawling_crawltask SET parent_id = NULL
        WHERE parent_id IN (SELECT id FROM old) AND id NOT IN (SELECT id FROM old))
    DELETE FROM crawling_crawltask WHERE id IN (SELECT id FROM old)
"""
JOBS = """
    DELETE FROM crawling_crawljob WHERE id IN (
        SELECT j.id FROM crawling_crawljob j
        WHERE j.created_at < %s AND j.status IN ('success', 'partial_success', 'failed', 'cancelled')
          AND NOT EXISTS (SELECT 1 FROM crawling_crawltask t WHERE t.job_id = j.id)
        LIMIT %s)
"""


def purge(*, before: dt.datetime) -> int:
    """Tasks that ended and the jobs they leave empty; answers how many rows went."""
    return sum(_purge(statement, before) for statement in (TASKS, JOBS))


def _purge(statement: str, before: dt.datetime) -> int:
    total, gone = 0, BATCH
    while gone == BATCH:
        with connection.cursor() as cursor:
            cursor.execute(statement, [before, BATCH])
            gone = cursor.rowcount
        total += gone
    return total
