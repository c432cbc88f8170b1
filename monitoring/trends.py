"""Prices and changes over time for whole lists: one statement a page, in bounded windows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone

from monitoring.changes import change_pct
from monitoring.models import Product

DAY = dt.timedelta(days=1)
DAYS = 30
BUCKETS = 10
# Enough candidates to see how their scores lie; the rest would only cost time.
MOST_SCORES = 20_000
# The last price of each day, each looked up in the index: checks every minute cost no more
# than one a day. The constant bound spares the planner all older months.
PRICES = """
    SELECT p.id, d.day, h.price, h.currency
    FROM unnest(%(ids)s::uuid[]) AS p(id)
    CROSS JOIN generate_series(
        %(since)s::timestamptz, %(until)s::timestamptz, interval '1 day') AS d(day)
    CROSS JOIN LATERAL (
        SELECT price, currency FROM monitoring_producthistory
        WHERE product_id = p.id AND variant_key = '' AND NOT is_doubted AND price IS NOT NULL
          AND crawl_timestamp > d.day - interval '1 day' AND crawl_timestamp <= d.day
          AND crawl_timestamp > %(since)s::timestamptz - interval '1 day'
        ORDER BY crawl_timestamp DESC LIMIT 1) AS h
    ORDER BY 1, 2
"""
CHANGES = """
    SELECT date_trunc('day', occurred_at, 'UTC')::date,
           count(*) FILTER (WHERE pct < 0), count(*) FILTER (WHERE pct > 0),
           count(*) FILTER (WHERE pct IS NULL OR pct = 0)
    FROM monitoring_change WHERE occurred_at >= %s AND status = 'confirmed' GROUP BY 1
"""
SCORES = """
    SELECT least(greatest(floor(discovery_score * %(buckets)s), 0), %(buckets)s - 1)::int,
           count(*)
    FROM (SELECT discovery_score FROM monitoring_product
          WHERE approval = 'pending' AND website_id IN (SELECT id FROM monitoring_website)
          LIMIT %(most)s) AS pending
    GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Trend:
    """A product's prices at the same time of each day, the oldest first; None: not known."""

    prices: list[Decimal | None] = field(default_factory=list)
    day_pct: Decimal | None = None
    month_pct: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Day:
    on: dt.date
    down: int = 0
    up: int = 0
    other: int = 0


def trends_of(
    products: Sequence[Product], now: dt.datetime | None = None
) -> dict[uuid.UUID, Trend]:
    """30 days of each, in its currency of today."""
    until = now or timezone.now()
    since = until - DAYS * DAY
    days = [since + n * DAY for n in range(DAYS + 1)]
    known: dict[uuid.UUID, dict[dt.datetime, tuple[Decimal, str]]] = {}
    with connection.cursor() as cursor:
        span: dict[str, Any] = {
            "ids": [product.pk for product in products],
            "since": since,
            "until": until,
        }
        cursor.execute(PRICES, span)
        for pk, day, price, currency in cursor.fetchall():
            known.setdefault(pk, {})[day] = (price, currency)
    return {product.pk: _trend(product, days, known.get(product.pk, {})) for product in products}


def _trend(
    product: Product,
    days: Sequence[dt.datetime],
    known: dict[dt.datetime, tuple[Decimal, str]],
) -> Trend:
    """A day without a check has the price of the day before."""
    prices: list[Decimal | None] = []
    last: Decimal | None = None
    for day in days:
        price, currency = known.get(day, (None, ""))
        last = price if price is not None and currency == product.current_currency else last
        prices.append(last)
    first = next((price for price in prices if price is not None), None)
    now = product.current_price
    return Trend(prices, _pct(prices[-2], now), _pct(first, now))


def _pct(old: Decimal | None, new: Decimal | None) -> Decimal | None:
    return None if old is None or new is None else change_pct(old, new)


def changes_by_day(now: dt.datetime | None = None) -> list[Day]:
    """The last 30 days, today included, also those without a change."""
    today = (now or timezone.now()).astimezone(dt.UTC).date()
    first = today - (DAYS - 1) * DAY
    with connection.cursor() as cursor:
        cursor.execute(CHANGES, [dt.datetime.combine(first, dt.time(), dt.UTC)])
        found = {row[0]: Day(*row) for row in cursor.fetchall()}
    dates = [first + n * DAY for n in range(DAYS)]
    return [found.get(on, Day(on)) for on in dates]


def pending_scores() -> list[int]:
    """How many candidates have a score from 0 to 0.1, to 0.2 and so on."""
    with connection.cursor() as cursor:
        cursor.execute(SCORES, {"buckets": BUCKETS, "most": MOST_SCORES})
        found = dict(cursor.fetchall())
    return [found.get(bucket, 0) for bucket in range(BUCKETS)]
