"""Monthly range partitions of a big table: made ahead, in UTC, by one process at a time."""

from __future__ import annotations

import datetime as dt
import zlib
from dataclasses import dataclass

from django.db import connection, transaction


@dataclass(frozen=True)
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
    def suffix(self) -> str:
        return f"{self.year:04d}_{self.month:02d}"


def ensure_partitions(table: str, *, now: dt.datetime, back: int = 1, ahead: int = 3) -> list[str]:
    """Make the missing months around ``now``; answers the names of those it made."""
    months = [Month.of(now).plus(offset) for offset in range(-back, ahead + 1)]
    made = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [zlib.crc32(table.encode())])
        for month in months:
            name = f"{table}_{month.suffix}"
            cursor.execute("SELECT to_regclass(%s) IS NULL", [name])
            if cursor.fetchone()[0]:
                cursor.execute(
                    f'CREATE TABLE "{name}" PARTITION OF "{table}" '
                    f"FOR VALUES FROM ('{month.start}') TO ('{month.plus(1).start}')"
                )
                made.append(name)
    return made


def rows_in_default(table: str) -> int:
    """Rows that found no month: they must not be there, and block making that month."""
    with connection.cursor() as cursor:
        few = f'SELECT 1 FROM "{table}_default" LIMIT 1000'  # noqa: S608
        cursor.execute(f"SELECT count(*) FROM ({few}) x")  # noqa: S608
        return int(cursor.fetchone()[0])


def has_month(table: str, moment: dt.datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{table}_{Month.of(moment).suffix}"])
        return bool(cursor.fetchone()[0])
