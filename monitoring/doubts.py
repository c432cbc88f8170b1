"""Prices that are hard to believe. Pure: whoever asks has them looked at a second time.

A shop that really did this confirms it within a minute; a misplaced decimal point, a net
price or a monthly rate that was read for the price does not.
"""

from __future__ import annotations

from decimal import Decimal

CENT = Decimal("0.01")
# Decimal points and thousands separators that were read for one another.
SHIFTS = (10, 100, 1000)
# Value added taxes of 19 to 23 %. 25 % is left out: a fifth off is the commonest sale.
TAXES = tuple(Decimal(rate) for rate in ("1.19", "1.20", "1.21", "1.22", "1.23"))
# Months of common payment plans: the rate stands beside the price.
INSTALMENTS = (3, 4, 6, 12, 18, 24, 36, 48)
FARTHEST = 5


def doubt(old: Decimal, new: Decimal, *, same_currency: bool) -> str:
    """Why the step from ``old`` to ``new`` is not believed at once; empty when it is."""
    if not same_currency:
        return "the currency changed"
    if old == new or old <= 0:
        return ""
    if new <= 0:
        return "the price is zero"
    low, high = min(old, new), max(old, new)
    return _shift(low, high) or _tax(low, high) or _instalment(old, new) or _far(low, high)


def _shift(low: Decimal, high: Decimal) -> str:
    found = next((times for times in SHIFTS if _close(low * times, high, times)), None)
    return f"the price moved by a factor of {found}" if found else ""


def _tax(low: Decimal, high: Decimal) -> str:
    found = next((rate for rate in TAXES if _close(low * rate, high)), None)
    return f"the price moved by a tax of {(found - 1) * 100:.0f} %" if found else ""


def _instalment(old: Decimal, new: Decimal) -> str:
    found = next((months for months in INSTALMENTS if _close(new * months, old, months)), None)
    return f"the price is one of {found} instalments" if found else ""


def _far(low: Decimal, high: Decimal) -> str:
    return f"the price moved more than {FARTHEST}-fold" if high > low * FARTHEST else ""


def _close(computed: Decimal, seen: Decimal, cents: int = 1) -> bool:
    """The same but for rounding; a coarser match would doubt every honest step nearby."""
    return abs(computed - seen) <= CENT * cents / 2
