"""Everything a page about one product tells: its prices in a span, what changed, what was read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from monitoring import charts, series
from monitoring.changes import plain
from monitoring.models import AlertRule, Change, Product, ProductHistory

RANGES = {1: "24 hours", 7: "7 days", 30: "30 days", 90: "90 days", 365: "1 year"}
USUAL_RANGE = 90
LOOKBACK = dt.timedelta(days=90)
MOST_CHANGES, MOST_CHECKS = 50, 20
SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class Difference:
    """A value of the raw data that two readings disagree on; None: not there."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Readings:
    """The newest data that was read, against the one before it."""

    new_at: dt.datetime
    old_at: dt.datetime
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class Story:
    days: int
    chart: str
    changes: Sequence[Change]
    checks: Sequence[ProductHistory]
    readings: Readings | None
    targets: Sequence[AlertRule]


def fitting_range(product: Product) -> int:
    """The usual one, or what a younger product fills."""
    age = (timezone.now() - product.created_at).days
    return next(days for days in RANGES if days > age or days == USUAL_RANGE)


def tell(product: Product, days: int) -> Story:
    changes = list(product.changes.order_by("-occurred_at", "-id")[:MOST_CHANGES])
    return Story(
        days=days,
        chart=_chart(product, changes, days),
        changes=changes,
        checks=_checks(product),
        readings=_readings(product),
        targets=list(
            AlertRule.objects.filter(product=product, kind__in=AlertRule.WITH_VALUE).order_by("id")
        ),
    )


def _chart(product: Product, changes: Sequence[Change], days: int) -> str:
    now = timezone.now()
    since = now - dt.timedelta(days=days)
    points = series.points(product.pk, since, now)
    lines = [charts.Line(str(product), points)]
    marks = list(_marks(changes, points))
    title = f"{RANGES.get(days, days)} {product.current_currency}"
    return charts.draw(title, lines, since, now, marks=marks, inside=True)


def _marks(changes: Sequence[Change], points: Sequence[series.Point]) -> Iterator[charts.Mark]:
    """At the price that held when the change was seen."""
    known = [(point.at, point.price) for point in points if point.price is not None]
    for change in changes:
        price = next((price for at, price in reversed(known) if at <= change.occurred_at), None)
        if price is not None and not change.variant_key:
            yield charts.Mark(change.occurred_at, price, in_words(change))


def in_words(change: Change) -> str:
    kind = change.get_kind_display()
    step = "" if change.pct is None else f" ({change.pct:+.1f} %)"
    at = timezone.localtime(change.occurred_at)
    return (
        f"{at:%Y-%m-%d %H:%M} {kind}: "
        f"{change.old or '—'} → {change.new or '—'} {change.currency}".rstrip()
        + step
    )


def _recent(product: Product) -> Any:
    return ProductHistory.objects.filter(
        product_id=product.pk, variant_key="", crawl_timestamp__gte=timezone.now() - LOOKBACK
    ).order_by("-crawl_timestamp")


def _checks(product: Product) -> Sequence[ProductHistory]:
    return list(_recent(product).defer("raw_crawl_data")[:MOST_CHECKS])


def _readings(product: Product) -> Readings | None:
    """Only what differs is kept: the newest two that were."""
    kept = _recent(product).exclude(raw_crawl_data=None)
    rows = list(kept.values_list("crawl_timestamp", "raw_crawl_data")[:2])
    if len(rows) < 2:
        return None
    (new_at, new), (old_at, old) = rows
    return Readings(new_at, old_at, differences(old, new))


def differences(old: Any, new: Any) -> list[Difference]:
    before, after = dict(_flat(old)), dict(_flat(new))
    names = sorted({*before, *after})
    return [
        Difference(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}".strip("."))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{number}")
    else:
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield name, text[:SHOWN_CHARS]


def target_in_words(rule: AlertRule) -> str:
    assert rule.value is not None
    return f"{rule.get_kind_display()} {plain(rule.value)}"
