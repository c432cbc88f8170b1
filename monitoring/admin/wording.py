"""How the screens write prices, percents and stock."""

from __future__ import annotations

from decimal import Decimal

from common.console import BAD, GOOD, INFO, WARN
from monitoring.changes import plain

STOCK_COLOURS = {
    "in_stock": GOOD,
    "limited_availability": WARN,
    "preorder": INFO,
    "backorder": INFO,
    "out_of_stock": BAD,
    "discontinued": BAD,
}


def price_text(amount: Decimal | None, currency: str) -> str | None:
    return None if amount is None else f"{plain(amount)}\u00a0{currency}".strip()


def percent_text(percent: Decimal | None) -> str | None:
    return None if percent is None else f"{percent:+.2f}\u00a0%"
