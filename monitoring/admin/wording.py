"""How the screens write prices, percents and stock."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

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


def verdict_text(verdict: dict[str, Any] | None) -> str:
    """What the test crawl showed, in sentences."""
    if verdict is None:
        return "Not yet: the first seed page waits for a worker."
    if verdict["robots"] == "forbidden":
        return "robots.txt of the shop forbids the seed page."
    said = [f"HTTP {verdict['http_status']}."] if verdict["http_status"] else []
    if verdict["error"]:
        said.append(f"Could not be read: {verdict['error']}.")
    elif verdict["product_found"]:
        said.append(f"Product data by {verdict['method'] or 'its page'}.")
    else:
        said.append("No product data yet.")
    if verdict["needs_javascript"]:
        said.append("Pages are built by scripts: a browser is needed.")
    elif verdict["needs_javascript"] is False:
        said.append("No JavaScript needed.")
    if verdict["platform"]:
        said.append(f"Platform: {verdict['platform']}.")
    return " ".join(said)
