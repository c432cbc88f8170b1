"""Monthly range partitions of a big table: made ahead, in UTC, by one process at a time."""

from __future__ import annotations

import datetime as dt
import zlib
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

# Whoever waits for a lock makes all others wait behind it.
DETACH_WAIT = "150ms"


@dataclass(frozen=True, order=True)
class Month:
    year: int
    month: int

    @classmethod
    def of(cls, moment: dt.datetime) -> Month:
        utc = moment.astimezone(dt.UTC)
        return cls(utc.year, utc.month)

    def plus(self, months: int) -> Month:
        index = self.year * 12 + self.month - 1 + months
        return Month(index // 12, index % 12 + 1)

    @property
    def start(self) -> str:
        # The offset keeps the session time zone out of the bound.
        return f"{self.year:04d}-{self.month:02d}-01 00:00:00+00"

    @property
    def first_moment(self) -> dt.datetime:
        return dt.datetime(self.year, self.month, 1, tzinfo=dt.UTC)

    @property
    def suffix(self) -> str:
        return f"{self.year:04d}_{self.month:02d}"


def ensure_partitions(table: str, *, now: dt.datetime, back: int = 1, ahead: int = 3) -> list[str]:
    """Make the missing months around ``now``, and those of rows that found none; answers the
    names of those it made."""
    wanted = {Month.of(now).plus(offset) for offset in range(-back, ahead + 1)}
    made = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [zlib.crc32(table.encode())])
        cursor.execute("SELECT substring(pg_get_partkeydef(%s::regclass), '\\((.+)\\)')", [table])
        key = cursor.fetchone()[0]
        for month in sorted(wanted | _stray_months(cursor, table, key)):
            cursor.execute("SELECT to_regclass(%s) IS NULL", [f"{table}_{month.suffix}"])
            if cursor.fetchone()[0]:
                made.append(_make(cursor, table, key, month))
    return made


def _stray_months(cursor: Any, table: str, key: str) -> set[Month]:
    utc = f"{key} AT TIME ZONE 'UTC'"
    cursor.execute(
        f"SELECT DISTINCT extract(year FROM {utc})::int, extract(month FROM {utc})::int"  # noqa: S608
        f' FROM "{table}_default"'
    )
    return {Month(*row) for row in cursor.fetchall()}


def _make(cursor: Any, table: str, key: str, month: Month) -> str:
    name, span = f"{table}_{month.suffix}", (month.start, month.plus(1).start)
    bounds = f"FOR VALUES FROM ('{span[0]}') TO ('{span[1]}')"
    within = f"{key} >= '{span[0]}' AND {key} < '{span[1]}'"
    cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{table}_default" WHERE {within})')  # noqa: S608
    if not cursor.fetchone()[0]:
        cursor.execute(f'CREATE TABLE "{name}" PARTITION OF "{table}" {bounds}')
        return name
    # PostgreSQL refuses a month while the default partition holds rows of it.
    cursor.execute(f'LOCK TABLE "{table}_default" IN ACCESS EXCLUSIVE MODE')
    cursor.execute(f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING ALL)')
    cursor.execute(
        f'WITH stray AS (DELETE FROM "{table}_default" WHERE {within} RETURNING *)'  # noqa: S608
        f' INSERT INTO "{name}" SELECT * FROM stray'
    )
    cursor.execute(f'ALTER TABLE "{table}" ATTACH PARTITION "{name}" {bounds}')
    return name


def months_of(table: str) -> list[Month]:
    """The months that have a partition, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = to_regclass(%s) ORDER BY 1",
            [table],
        )
        suffixes = [name.removeprefix(f"{table}_") for (name,) in cursor.fetchall()]
    return [Month(*map(int, s.split("_"))) for s in suffixes if s != "default"]


def drop_month(table: str, month: Month) -> None:
    """Detached and dropped, or neither. The files go after the locks are free: readers of the
    other months wait for the detaching alone. PostgreSQL allows no CONCURRENTLY beside a
    default partition."""
    name = f"{table}_{month.suffix}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{DETACH_WAIT}'")
        cursor.execute(f'ALTER TABLE "{table}" DETACH PARTITION "{name}"')
        cursor.execute(f'DROP TABLE "{name}"')


def rows_in_default(table: str) -> int:
    """Rows that found no month, because beat was away when it was to be made."""
    with connection.cursor() as cursor:
        few = f'SELECT 1 FROM "{table}_default" LIMIT 1000'  # noqa: S608
        cursor.execute(f"SELECT count(*) FROM ({few}) x")  # noqa: S608
        return int(cursor.fetchone()[0])


def has_month(table: str, moment: dt.datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{table}_{Month.of(moment).suffix}"])
        return bool(cursor.fetchone()[0])
