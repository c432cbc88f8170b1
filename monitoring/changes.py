"""What changed, and is it worth telling? Pure: no database, no clock.

Prices are compared with the price the client was last told, so that small steps add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from monitoring.models import Change, StockStatus

Kind = Change.Kind
AVAILABLE = {StockStatus.IN_STOCK, StockStatus.LIMITED_AVAILABILITY}
UNAVAILABLE = {StockStatus.OUT_OF_STOCK, StockStatus.DISCONTINUED}
HUNDRED = Decimal(100)
# What the column holds.
LARGEST_PCT = Decimal(10) ** 10


@dataclass(frozen=True, slots=True)
class Rules:
    """When a difference is news."""

    threshold_pct: Decimal
    threshold_abs: Decimal | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a product before or after a check."""

    price: Decimal | None = None
    currency: str = ""
    stock: str = StockStatus.UNKNOWN
    notified_price: Decimal | None = None
    notified_currency: str = ""
    notified_stock: str = ""
    lowest: Decimal | None = None
    highest: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What one page said. A missing price or an unknown stock says nothing."""

    price: Decimal | None
    currency: str
    stock: str


@dataclass(frozen=True, slots=True)
class News:
    kind: str
    old: str
    new: str
    rule: str
    pct: Decimal | None = None
    currency: str = ""
    # A currency that flips is doubted before it is told.
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    state: State
    news: tuple[News, ...]
    price_changed: bool
    stock_changed: bool
    price_change_pct: Decimal | None


def judge(before: State, seen: Seen, rules: Rules) -> Judgement:
    """The state after a check, and the news in it. The first check is the silent baseline."""
    price_news, state = _judge_price(before, seen, rules)
    stock_news, state = _judge_stock(state, seen)
    same_currency = (seen.currency or before.currency) == (before.currency or seen.currency)
    price_changed = None not in (before.notified_price, seen.price) and (
        seen.price != before.price or not same_currency
    )
    return Judgement(
        state=state,
        news=(*price_news, *stock_news),
        price_changed=price_changed,
        stock_changed=bool(before.notified_stock)
        and StockStatus.UNKNOWN not in (before.stock, state.stock)
        and before.stock != state.stock,
        price_change_pct=change_pct(before.price, seen.price)
        if same_currency and before.notified_price is not None
        else None,
    )


def change_pct(old: Decimal | None, new: Decimal | None) -> Decimal | None:
    """Null when there is nothing to compare with, nothing to divide by, or no end to it."""
    if old is None or new is None or old <= 0:
        return None
    pct = (new - old) / old * HUNDRED
    return pct.quantize(Decimal("0.0001")) if pct < LARGEST_PCT else None


def _judge_price(before: State, seen: Seen, rules: Rules) -> tuple[list[News], State]:
    if seen.price is None:
        return [], before
    currency = seen.currency or before.currency
    state = replace(before, price=seen.price, currency=currency)
    if before.notified_price is None:
        return [], _told(_extremes(state, seen.price), seen.price, currency)
    if currency != before.notified_currency:
        return _judge_currency(before, state, seen.price)
    rule = crossed(before.notified_price, seen.price, rules)
    if rule is None:
        return [], _extremes(state, seen.price)
    news = _price_news(before, seen.price, currency, rule)
    return news, _told(_extremes(state, seen.price), seen.price, currency)


def _judge_currency(before: State, state: State, price: Decimal) -> tuple[list[News], State]:
    """A flip is doubted and moves no baseline; seen twice in a row it is the new currency."""
    if before.currency == state.currency:
        fresh = replace(state, lowest=None, highest=None)
        return [], _told(_extremes(fresh, price), price, state.currency)
    flip = News(
        Kind.CURRENCY_CHANGED,
        before.notified_currency,
        state.currency,
        "currency",
        quarantined=True,
    )
    return [flip], state


def crossed(old: Decimal, new: Decimal, rules: Rules) -> str | None:
    """The rule under which this step is news, in words; None when it is too small."""
    if old == new:
        return None
    pct = change_pct(old, new)
    if pct is None or abs(pct) >= rules.threshold_pct:
        return f"percent ≥ {rules.threshold_pct}"
    if rules.threshold_abs is not None and abs(new - old) >= rules.threshold_abs:
        return f"absolute ≥ {rules.threshold_abs}"
    return None


def _price_news(before: State, price: Decimal, currency: str, rule: str) -> list[News]:
    assert before.notified_price is not None
    pct = change_pct(before.notified_price, price)
    old, new = plain(before.notified_price), plain(price)
    news = [News(Kind.PRICE_CHANGED, old, new, rule, pct, currency)]
    if before.lowest is not None and price < before.lowest:
        news.append(News(Kind.NEW_LOW, plain(before.lowest), new, "lowest ever", pct, currency))
    if before.highest is not None and price > before.highest:
        news.append(News(Kind.NEW_HIGH, plain(before.highest), new, "highest ever", pct, currency))
    return news


def _judge_stock(before: State, seen: Seen) -> tuple[list[News], State]:
    if seen.stock == StockStatus.UNKNOWN:
        return [], before
    state = replace(before, stock=seen.stock, notified_stock=seen.stock)
    old = before.notified_stock
    if not old or old == seen.stock:
        return [], state
    news = [News(Kind.STOCK_CHANGED, old, seen.stock, "stock transition")]
    if old in UNAVAILABLE and seen.stock in AVAILABLE:
        news.append(News(Kind.BACK_IN_STOCK, old, seen.stock, "back in stock"))
    return news, state


def _told(state: State, price: Decimal, currency: str) -> State:
    return replace(state, notified_price=price, notified_currency=currency)


def _extremes(state: State, price: Decimal) -> State:
    return replace(
        state,
        lowest=price if state.lowest is None else min(state.lowest, price),
        highest=price if state.highest is None else max(state.highest, price),
    )


def plain(amount: Decimal) -> str:
    """A price as people and JSON write it: two decimals unless there are more."""
    short = amount.quantize(Decimal("0.01"))
    return format(short if short == amount else amount.normalize(), "f")
