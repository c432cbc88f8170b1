"""Old history goes: statistics first, then the rows of each website past its own limit, then
the months that are older than every limit. Nothing younger than its website's limit."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import structlog
from django.db import OperationalError, connection
from django.db.models import Max
from django.utils import timezone

from common import partitions
from common.partitions import Month
from monitoring import statistics
from monitoring.history import TABLE
from monitoring.models import Export, Website

log = structlog.get_logger(__name__)

# Small enough that its row locks are gone within 200 ms.
BATCH = 2_000
DETACH_TRIES = 20
DETACH_PAUSE_SECONDS = 0.5
OLDEST = """
    SELECT min(crawl_timestamp) FROM monitoring_producthistory
    WHERE website_id = %s AND crawl_timestamp < %s
"""
DELETE = """
    DELETE FROM monitoring_producthistory WHERE (id, crawl_timestamp) IN (
        SELECT id, crawl_timestamp FROM monitoring_producthistory
        WHERE website_id = %s AND crawl_timestamp < %s
        ORDER BY crawl_timestamp LIMIT %s)
"""
COUNT = """
    SELECT count(*) FROM monitoring_producthistory WHERE website_id = %s AND crawl_timestamp < %s
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that goes, or would go."""

    what: str
    rows: int
    before: dt.datetime


def apply(*, now: dt.datetime | None = None, dry_run: bool = False) -> list[Step]:
    """Nightly; a dry run says the same and removes nothing."""
    now = now or timezone.now()
    if not dry_run:
        statistics.write_recent(now)
    steps = [*_expire_websites(now, dry_run=dry_run), *_drop_months(now, dry_run=dry_run)]
    if not dry_run:
        Export.objects.filter(expires_at__lt=now).delete()
    return [step for step in steps if step.rows]


def limit_of(website_days: int, now: dt.datetime) -> dt.datetime:
    return now - dt.timedelta(days=website_days)


def _expire_websites(now: dt.datetime, *, dry_run: bool) -> Iterator[Step]:
    websites = Website.objects.order_by("id").values_list("id", "name", "retention_days")
    for website_id, name, days in websites:
        limit = limit_of(days, now)
        if dry_run:
            yield Step(f"{name}: rows past {days} days", _count(website_id, limit), limit)
        else:
            _keep_statistics(website_id, limit)
            yield Step(f"{name}: rows past {days} days", _delete(website_id, limit), limit)


def _keep_statistics(website_id: uuid.UUID, limit: dt.datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(OLDEST, [website_id, limit])
        oldest = cursor.fetchone()[0]
    if oldest is None:
        return
    month, last = Month.of(oldest), Month.of(limit)
    while month.first_moment <= last.first_moment:
        statistics.write_month(month, website_id=website_id)
        month = month.plus(1)


def _count(website_id: uuid.UUID, limit: dt.datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [website_id, limit])
        return int(cursor.fetchone()[0])


def _delete(website_id: uuid.UUID, limit: dt.datetime) -> int:
    """Each batch is a transaction of its own."""
    total, deleted = 0, BATCH
    while deleted == BATCH:
        with connection.cursor() as cursor:
            cursor.execute(DELETE, [website_id, limit, BATCH])
            deleted = cursor.rowcount
        total += deleted
    return total


def _drop_months(now: dt.datetime, *, dry_run: bool) -> Iterator[Step]:
    """Rows of websites that are gone go with their month at the latest."""
    longest = Website.objects.aggregate(days=Max("retention_days"))["days"]
    if longest is None:
        return
    limit = limit_of(longest, now)
    for month in partitions.months_of(TABLE):
        if month.plus(1).first_moment > limit:
            break
        name = f"month {month.year:04d}-{month.month:02d}"
        if dry_run or _drop(month):
            yield Step(f"{name}: dropped as a whole", 1, limit)


def _drop(month: Month) -> bool:
    statistics.write_month(month)
    for _ in range(DETACH_TRIES):
        try:
            partitions.drop_month(TABLE, month)
        except OperationalError:
            time.sleep(DETACH_PAUSE_SECONDS)
        else:
            return True
    log.warning("a month could not be detached, tomorrow again", month=month.suffix)
    return False
