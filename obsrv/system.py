"""How the installation is doing: what its page in the console shows."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.utils import timezone
from kombu.exceptions import ChannelError, OperationalError

from common.partitions import Month, months_of
from monitoring.history import TABLE
from monitoring.models import Website
from obsrv import health, queues

LARGEST = 8
# Estimates of the planner: counting would read it all.
PARTITIONS = """
    SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(%s) ORDER BY 1
"""
TABLES = """
    SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND NOT c.relispartition AND n.nspname = 'public'
    ORDER BY 3 DESC LIMIT %s
"""
# Few enough to be read at every view; more are estimated by these.
NEWEST_PAGES = 10_000
PAGES = """
    SELECT count(*), coalesce(sum(compressed_size), 0),
        (SELECT reltuples::bigint FROM pg_class WHERE oid = 'crawling_storedpage'::regclass)
    FROM (SELECT compressed_size FROM crawling_storedpage
          ORDER BY last_seen_at DESC LIMIT %s) newest
"""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    # Empty: all is well.
    trouble: str


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    month: Month | None
    rows: int
    size: int
    # When the longest retention in force lets it go.
    drops_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Storage:
    database: int
    tables: list[Table]
    pages: int
    page_bytes: int
    # None where pages are in a bucket.
    disk_free: int | None


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    # None where the broker does not answer.
    waiting: int | None
    workers: list[str]


def checks() -> list[Check]:
    """Those that answer at once; the queues have their own part of the page."""
    asked: dict[str, Callable[[], None]] = {
        name: check for name, check in health.CHECKS.items() if name != "queues"
    }
    return [Check(name, health.failure_of(check) or "") for name, check in asked.items()]


def partitions() -> list[Partition]:
    longest = Website.objects.aggregate(days=Max("retention_days"))["days"]
    months = {f"{TABLE}_{month.suffix}": month for month in months_of(TABLE)}
    with connection.cursor() as cursor:
        cursor.execute(PARTITIONS, [TABLE])
        found = cursor.fetchall()
    return [
        Partition(name, month, rows, size, _drop_date(month, longest))
        for name, rows, size in found
        for month in [months.get(name)]
    ]


def _drop_date(month: Month | None, days: int | None) -> dt.datetime | None:
    if month is None or days is None:
        return None
    return month.plus(1).first_moment + dt.timedelta(days=days)


def storage() -> Storage:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        database = int(cursor.fetchone()[0])
        cursor.execute(TABLES, [LARGEST])
        tables = [Table(*facts) for facts in cursor.fetchall()]
        cursor.execute(PAGES, [NEWEST_PAGES])
        pages, page_bytes = _all_pages(*map(int, cursor.fetchone()))
    local = settings.PAGE_STORAGE == "local"
    free = shutil.disk_usage(settings.VAR_DIR).free if local else None
    return Storage(database, tables, pages, page_bytes, free)


def _all_pages(read: int, read_bytes: int, estimate: int) -> tuple[int, int]:
    if read < NEWEST_PAGES:
        return read, read_bytes
    pages = max(read, estimate)
    return pages, read_bytes * pages // read


def queue_states() -> list[Queue]:
    """Takes a second: that long workers may take to answer."""
    try:
        attended = queues.attended_lately()
    except queues.BrokerAway:
        attended = {}
    return [
        Queue(queue.name, waiting(queue.name), sorted(attended.get(queue.name, [])))
        for queue in settings.CELERY_TASK_QUEUES
    ]


def waiting(queue: str) -> int | None:
    """Messages in it, whatever the broker is."""
    try:
        with current_app.connection_for_read() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            channel: Any = broker.default_channel
            found = channel.queue_declare(queue=queue, passive=True)
    except ChannelError:
        # It comes into being with its first message.
        return 0
    except (OperationalError, OSError):
        return None
    return int(found.message_count)


def versions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        server = str(cursor.fetchone()[0])
    return {"PostgreSQL": server, "Clock": f"{timezone.now():%Y-%m-%d %H:%M:%S} UTC"}
