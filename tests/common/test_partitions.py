"""Months of a partitioned table, made late: rows that came before their month find it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import InternalError, connection

from common.partitions import (
    Month,
    drop_month,
    ensure_partitions,
    months_of,
    rows_in_default,
)
from monitoring.history import TABLE
from monitoring.models import ProductHistory
from tests.factories.monitoring import HistoryFactory

pytestmark = pytest.mark.django_db
NOW = dt.datetime(2031, 5, 10, tzinfo=dt.UTC)


def count_in(partition: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM "{TABLE}_{partition}"')
        return int(cursor.fetchone()[0])


def test_rows_that_came_before_their_month_move_into_it() -> None:
    stray = HistoryFactory.create(crawl_timestamp=NOW)
    other = HistoryFactory.create(crawl_timestamp=NOW - dt.timedelta(days=400))
    assert count_in("default") == 2
    made = ensure_partitions(TABLE, now=NOW, back=0, ahead=1)
    assert made == [f"{TABLE}_{month}" for month in ("2030_04", "2031_05", "2031_06")]
    assert [count_in(month) for month in ("2030_04", "2031_05", "2031_06")] == [1, 1, 0]
    assert rows_in_default(TABLE) == 0
    assert set(ProductHistory.objects.values_list("id", flat=True)) == {stray.pk, other.pk}


def test_a_month_made_late_takes_new_rows_and_refuses_the_same_one_twice() -> None:
    HistoryFactory.create(crawl_timestamp=NOW)
    ensure_partitions(TABLE, now=NOW, back=0, ahead=0)
    HistoryFactory.create(crawl_timestamp=NOW + dt.timedelta(days=1))
    assert count_in("2031_05") == 2
    assert ensure_partitions(TABLE, now=NOW, back=0, ahead=0) == []


@pytest.mark.django_db(transaction=True)
def test_a_month_that_cannot_be_dropped_stays_attached() -> None:
    month = Month.of(NOW)
    (name,) = ensure_partitions(TABLE, now=NOW, back=0, ahead=0)
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE VIEW on_a_month AS SELECT id FROM "{name}"')
        try:
            with pytest.raises(InternalError, match="depend"):
                drop_month(TABLE, month)
            stayed = months_of(TABLE)
        finally:
            cursor.execute("DROP VIEW on_a_month")
            cursor.execute(f'DROP TABLE "{name}"')
    assert month in stayed
    assert month not in months_of(TABLE)
