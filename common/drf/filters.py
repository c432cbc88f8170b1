"""Filters that take whatever the contract allows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import django_filters as filters  # type: ignore[import-untyped]


class MomentFilter(filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A time in any zone; PostgreSQL takes displacements of up to 16 hours only."""

    def filter(self, rows: Any, value: dt.datetime | None) -> Any:
        return super().filter(rows, value and _in_utc(value))


def _in_utc(moment: dt.datetime) -> dt.datetime:
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError:
        # Within a day of the ends of time.
        return moment.replace(tzinfo=dt.UTC)
