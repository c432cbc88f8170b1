"""A product's prices over time, as the database draws them together: by day, week, month."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import connection

INTERVALS = ("day", "week", "month")
MOST_POINTS = 5000
SLICES = 1600
# The bounds are constants for the planner, so only the months in question are read.
BUCKETS = """
    SELECT date_trunc(%s, crawl_timestamp, 'UTC') AS bucket,
           min(price), max(price), avg(price),
           (array_agg(price ORDER BY crawl_timestamp) FILTER (WHERE price IS NOT NULL))[1],
           (array_agg(price ORDER BY crawl_timestamp DESC) FILTER (WHERE price IS NOT NULL))[1],
           (array_agg(currency ORDER BY crawl_timestamp DESC))[1],
           (array_agg(stock_status ORDER BY crawl_timestamp DESC))[1],
           count(*), count(*) FILTER (WHERE price_changed), count(*) FILTER (WHERE stock_changed),
           count(*) FILTER (WHERE stock_status IN ('out_of_stock', 'discontinued'))
    FROM monitoring_producthistory
    WHERE product_id = %s AND variant_key = %s AND NOT is_doubted
      AND crawl_timestamp >= %s AND crawl_timestamp <= %s
    GROUP BY 1 ORDER BY 1 DESC LIMIT %s
"""
# A picture has fewer dots: of more checks than MOST_POINTS, each slice of the span keeps its
# lowest, its highest and its last one. The check before the span says what held when it began.
POINTS = """
    (SELECT crawl_timestamp, price, currency, stock_status FROM monitoring_producthistory
     WHERE product_id = %(product)s AND variant_key = %(variant)s AND NOT is_doubted
       AND crawl_timestamp < %(since)s AND crawl_timestamp >= %(since)s::timestamptz - interval '40 days'
     ORDER BY crawl_timestamp DESC LIMIT 1)
    UNION ALL
    (SELECT crawl_timestamp, price, currency, stock_status FROM (
        SELECT *, count(*) OVER () AS checks,
               row_number() OVER (PARTITION BY slice ORDER BY crawl_timestamp DESC) AS back,
               row_number() OVER (PARTITION BY slice ORDER BY price) AS from_low,
               row_number() OVER (PARTITION BY slice ORDER BY price DESC NULLS LAST) AS from_high
        FROM (
            SELECT crawl_timestamp, price, currency, stock_status,
                   floor(extract(epoch FROM crawl_timestamp - %(since)s::timestamptz)
                         / %(seconds)s) AS slice
            FROM monitoring_producthistory
            WHERE product_id = %(product)s AND variant_key = %(variant)s AND NOT is_doubted
              AND crawl_timestamp >= %(since)s AND crawl_timestamp <= %(until)s) AS looks
        ) AS ranked
     WHERE checks <= %(most)s OR 1 IN (back, from_low, from_high))
    ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Bucket:
    start: dt.datetime
    min_price: Decimal | None
    max_price: Decimal | None
    avg_price: Decimal | None
    first_price: Decimal | None
    last_price: Decimal | None
    currency: str
    stock_status: str
    checks: int
    price_changes: int
    stock_changes: int
    out_of_stock_checks: int


@dataclass(frozen=True, slots=True)
class Point:
    at: dt.datetime
    price: Decimal | None
    currency: str
    stock: str


def buckets(
    product_id: uuid.UUID,
    interval: str,
    since: dt.datetime,
    until: dt.datetime,
    *,
    variant_key: str = "",
    limit: int,
) -> list[Bucket]:
    """The newest first; weeks begin on Monday, all of them in UTC."""
    if interval not in INTERVALS:
        raise ValueError(interval)
    with connection.cursor() as cursor:
        cursor.execute(BUCKETS, [interval, product_id, variant_key, since, until, limit])
        return [Bucket(*row) for row in cursor.fetchall()]


def points(
    product_id: uuid.UUID, since: dt.datetime, until: dt.datetime, *, variant_key: str = ""
) -> list[Point]:
    values: dict[str, Any] = {
        "product": product_id,
        "variant": variant_key,
        "since": since,
        "until": until,
        "most": MOST_POINTS,
        "seconds": max((until - since).total_seconds(), 1) / SLICES,
    }
    with connection.cursor() as cursor:
        cursor.execute(POINTS, values)
        return [Point(*row) for row in cursor.fetchall()]
