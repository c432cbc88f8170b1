"""What happened over time, as the screens draw it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.plots import WIDTH, Series, Tick, bars, sparkline, ticks
from crawling.trends import Run
from monitoring import trends
from monitoring.trends import Trend

RUN_TONES = {
    "success": "good",
    "partial_success": "warn",
    "failed": "bad",
    "running": "info",
    "pending": "info",
}

CHANGE_TONES = {
    "price_changed": "info",
    "new_low": "good",
    "target_reached": "good",
    "back_in_stock": "good",
    "relisted": "good",
    "new_high": "bad",
    "delisted": "bad",
    "stock_changed": "warn",
    "currency_changed": "warn",
}


def changes_per_day(width: int = WIDTH) -> SafeString:
    days = trends.changes_by_day()
    series = [
        Series("price down", "good", [day.down for day in days]),
        Series("price up", "bad", [day.up for day in days]),
        Series("stock and others", "info", [day.other for day in days]),
    ]
    labels = [f"{day.on:%d %b}" for day in days]
    return bars("Changes per day", labels, series, width=width, empty="No change in 30 days.")


def score_histogram() -> SafeString:
    counts = trends.pending_scores()
    labels = [f"{bucket / trends.BUCKETS:g} +" for bucket in range(trends.BUCKETS)]
    series = [Series("candidates", "info", counts)]
    return bars("Waiting, by score", labels, series, empty="Nothing waits.")


def run_strip(runs: Sequence[Run]) -> SafeString:
    """A tick each; what it said comes on hovering."""
    strip = [Tick(RUN_TONES.get(run.status, "quiet"), _told(run)) for run in runs]
    return ticks(strip, title=f"The last {len(runs)} runs, the newest on the right")


def _told(run: Run) -> str:
    said = f"{run.at:%Y-%m-%d %H:%M} {run.status.replace('_', ' ')}: {run.processed} pages"
    return f"{said}, {run.errors} failed, {run.changes} changes"


def delta(pct: Decimal | None) -> str | None:
    """Cheaper is green, dearer red; nothing moved is quiet."""
    if pct is None:
        return None
    tone = "good" if pct < 0 else "bad" if pct > 0 else "quiet"
    text = f"{pct:+.1f}\u00a0%" if pct else "0\u00a0%"
    return format_html('<span class="plot-{} nowrap">{}</span>', tone, text)


def price_spark(trend: Trend) -> SafeString:
    known = [price for price in trend.prices if price is not None]
    if not known:
        return SafeString("")
    title = f"30 days: {_money(min(known))} to {_money(max(known))}"
    return sparkline([_number(price) for price in trend.prices], title=title)


def _number(price: Decimal | None) -> float | None:
    return None if price is None else float(price)


def _money(price: Decimal) -> str:
    return f"{price:.2f}"
