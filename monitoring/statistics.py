"""A month of a product in one row, computed by the database; kept when the history is gone."""

from __future__ import annotations

import datetime as dt
import uuid

from django.db import connection

from common.partitions import Month

# Each price stands until the next check; the last one of a month until the month is over,
# or until now. Doubted checks and variants count for nothing.
WRITE = """
WITH checks AS (
    SELECT product_id, price, currency, stock_status, price_changed, stock_changed,
           extract(epoch FROM lead(crawl_timestamp, 1, least(%(until)s, now()))
               OVER (PARTITION BY product_id ORDER BY crawl_timestamp) - crawl_timestamp)::numeric
               AS seconds,
           last_value(currency) OVER (PARTITION BY product_id ORDER BY crawl_timestamp
               ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last_currency
    FROM monitoring_producthistory
    WHERE crawl_timestamp >= %(since)s AND crawl_timestamp < %(until)s
      AND variant_key = '' AND NOT is_doubted
      AND (%(website)s::uuid IS NULL OR website_id = %(website)s)
      AND (%(product)s::uuid IS NULL OR product_id = %(product)s)
), months AS (
    SELECT c.product_id, max(last_currency) AS currency,
           min(price) FILTER (WHERE currency = last_currency) AS low,
           max(price) FILTER (WHERE currency = last_currency) AS high,
           avg(price) FILTER (WHERE currency = last_currency) AS average,
           sum(price * seconds) FILTER (WHERE currency = last_currency)
               / nullif(sum(seconds) FILTER (
                     WHERE currency = last_currency AND price IS NOT NULL), 0) AS weighted,
           count(*) FILTER (WHERE price_changed) AS price_changes,
           count(*) FILTER (WHERE stock_changed) AS stock_changes,
           coalesce(sum(seconds) FILTER (
               WHERE stock_status IN ('out_of_stock', 'discontinued')), 0) / 86400 AS out_days,
           count(*) AS snapshots
    FROM checks c JOIN monitoring_product p ON p.id = c.product_id
    GROUP BY c.product_id
)
INSERT INTO monitoring_productstatistics
    (id, created_at, updated_at, product_id, month, currency, min_price, max_price, avg_price,
     time_weighted_avg_price, price_changes_count, stock_changes_count, stock_out_days,
     total_snapshots)
SELECT gen_random_uuid(), now(), now(), product_id, %(month)s, currency, low, high, average,
       weighted, price_changes, stock_changes, round(out_days, 2), snapshots
FROM months ORDER BY product_id
ON CONFLICT ON CONSTRAINT statistics_once_per_month DO UPDATE SET
    updated_at = now(), currency = excluded.currency, min_price = excluded.min_price,
    max_price = excluded.max_price, avg_price = excluded.avg_price,
    time_weighted_avg_price = excluded.time_weighted_avg_price,
    price_changes_count = excluded.price_changes_count,
    stock_changes_count = excluded.stock_changes_count,
    stock_out_days = excluded.stock_out_days, total_snapshots = excluded.total_snapshots
WHERE monitoring_productstatistics.total_snapshots <= excluded.total_snapshots
"""


def write_month(
    month: Month, *, website_id: uuid.UUID | None = None, product_id: uuid.UUID | None = None
) -> int:
    """Compute and keep a month; answers the products in it. A month whose rows are partly
    gone by retention counts fewer than before, and what was written of it stays."""
    since, until = month.first_moment, month.plus(1).first_moment
    with connection.cursor() as cursor:
        cursor.execute(
            WRITE,
            {
                "since": since,
                "until": until,
                "month": dt.date(month.year, month.month, 1),
                "website": website_id,
                "product": product_id,
            },
        )
        return int(cursor.rowcount)


def write_recent(now: dt.datetime) -> None:
    """Of all products: the month that is not over, and in its first days the one before."""
    month = Month.of(now)
    if now.astimezone(dt.UTC).day <= 3:
        write_month(month.plus(-1))
    write_month(month)
