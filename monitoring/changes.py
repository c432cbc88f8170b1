"""What changed, and is it worth telling? Pure: no database, no clock.

Prices are compared with the price the client was last told, so that small steps add up.
A price that is hard to believe is held: it moves nothing until a second look confirms it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from decimal import Decimal

from monitoring.doubts import doubt
from monitoring.models import AlertRule, Change, StockStatus

Kind = Change.Kind
Alerts = AlertRule.Kind
AVAILABLE = {StockStatus.IN_STOCK, StockStatus.LIMITED_AVAILABILITY}
UNAVAILABLE = {StockStatus.OUT_OF_STOCK, StockStatus.DISCONTINUED}
HUNDRED = Decimal(100)
# What the column holds.
LARGEST_PCT = Decimal(10) ** 10
WANTS_A_SECOND_LOOK = "the rule wants a second look"


@dataclass(frozen=True, slots=True)
class Alert:
    """A client's rule as the judge needs it."""

    id: uuid.UUID
    kind: str
    value: Decimal = Decimal(0)
    direction: str = AlertRule.Direction.BOTH
    stock_from: frozenset[str] = frozenset()
    stock_to: frozenset[str] = frozenset()
    confirm: bool = False
    # False while it rests after it was told.
    armed: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """When a difference is news. Alerts that are steps take the place of the thresholds."""

    threshold_pct: Decimal
    threshold_abs: Decimal | None = None
    alerts: tuple[Alert, ...] = ()


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
    held_price: Decimal | None = None
    held_currency: str = ""
    held_reason: str = ""


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
    quarantined: bool = False
    alert_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    state: State
    news: tuple[News, ...]
    price_changed: bool
    stock_changed: bool
    price_change_pct: Decimal | None
    # The price is not believed yet.
    held: bool = False
    # What was held before this check is decided by it, one way or the other.
    confirmed: bool = False
    refuted: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule under which something is news, in words and by id."""

    words: str
    alert: Alert | None = None

    @property
    def id(self) -> uuid.UUID | None:
        return self.alert.id if self.alert else None


def judge(before: State, seen: Seen, rules: Rules, *, trusted: bool = False) -> Judgement:
    """The state after a check, and the news in it. The first check is the silent baseline.
    What is ``trusted`` is never held."""
    if _says_the_same(before, seen):
        return replace(_quiet(before), price_change_pct=change_pct(before.price, seen.price))
    price = _judge_price(before, seen, rules, trusted=trusted)
    stock_news, state = _judge_stock(price.state, seen, rules)
    same_currency = (seen.currency or before.currency) == (before.currency or seen.currency)
    watched = before.notified_price is not None and not price.held
    return replace(
        price,
        state=state,
        news=(*price.news, *stock_news),
        price_changed=watched
        and seen.price is not None
        and (seen.price != before.price or not same_currency),
        stock_changed=bool(before.notified_stock)
        and StockStatus.UNKNOWN not in (before.stock, state.stock)
        and before.stock != state.stock,
        price_change_pct=change_pct(before.price, seen.price)
        if same_currency and watched
        else None,
    )


def _says_the_same(before: State, seen: Seen) -> bool:
    """The usual page: what is known, what was told and what it says are one."""
    said = (seen.price, seen.currency, seen.stock)
    return (
        seen.price is not None
        and seen.stock != StockStatus.UNKNOWN
        and before.held_price is None
        and said == (before.price, before.currency, before.stock)
        and said == (before.notified_price, before.notified_currency, before.notified_stock)
    )


def change_pct(old: Decimal | None, new: Decimal | None) -> Decimal | None:
    """Null when there is nothing to compare with, nothing to divide by, or no end to it."""
    if old is None or new is None or old <= 0:
        return None
    pct = (new - old) / old * HUNDRED
    return pct.quantize(Decimal("0.0001")) if pct < LARGEST_PCT else None


def _judge_price(before: State, seen: Seen, rules: Rules, *, trusted: bool) -> Judgement:
    if seen.price is None:
        return _quiet(before)
    currency = seen.currency or before.currency
    state = replace(
        before,
        price=seen.price,
        currency=currency,
        held_price=None,
        held_currency="",
        held_reason="",
    )
    if before.notified_price is None:
        return _quiet(_told(_extremes(state, seen.price)))
    confirmed = (seen.price, currency) == (before.held_price, before.held_currency)
    refuted = before.held_price is not None and not confirmed
    news, state = _price_news(before, state, seen.price, rules)
    sure = confirmed or trusted
    reason = "" if sure else _reason_to_wait(before, seen.price, currency, news, rules)
    judgement = replace(_quiet(state), news=tuple(news), confirmed=confirmed, refuted=refuted)
    return _hold(before, judgement, reason) if reason else judgement


def _quiet(state: State) -> Judgement:
    return Judgement(state, (), price_changed=False, stock_changed=False, price_change_pct=None)


def _hold(before: State, judgement: Judgement, reason: str) -> Judgement:
    """Nothing moves but the note of what was seen."""
    seen = judgement.state
    state = replace(before, held_price=seen.price, held_currency=seen.currency, held_reason=reason)
    news = tuple(replace(one, quarantined=True) for one in judgement.news)
    return replace(judgement, state=state, news=news, held=True)


def _reason_to_wait(
    before: State, price: Decimal, currency: str, news: list[News], rules: Rules
) -> str:
    known = before.notified_price if before.price is None else before.price
    assert known is not None
    reason = doubt(known, price, same_currency=currency == before.notified_currency)
    if reason:
        return reason
    careful = {alert.id for alert in rules.alerts if alert.confirm}
    return WANTS_A_SECOND_LOOK if any(one.alert_id in careful for one in news) else ""


def _price_news(
    before: State, state: State, price: Decimal, rules: Rules
) -> tuple[list[News], State]:
    """The news in a believed price, and the state after it."""
    if state.currency != before.notified_currency:
        return _currency_news(before, state, price)
    assert before.notified_price is not None
    steps = _steps(before, price, state.currency, rules)
    news = [*steps, *_record_news(before, price, state.currency, rules, told=bool(steps))]
    news += _target_news(before, price, state.currency, rules)
    state = _extremes(state, price)
    return news, _told(state) if news else state


def _currency_news(before: State, state: State, price: Decimal) -> tuple[list[News], State]:
    old, new = before.notified_currency, state.currency
    fresh = replace(state, lowest=None, highest=None)
    flip = News(Kind.CURRENCY_CHANGED, old, new, "currency", currency=new)
    return [flip], _told(_extremes(fresh, price))


def _steps(before: State, price: Decimal, currency: str, rules: Rules) -> list[News]:
    assert before.notified_price is not None
    rule = crossed(before.notified_price, price, rules)
    if rule is None:
        return []
    pct = change_pct(before.notified_price, price)
    old, new = plain(before.notified_price), plain(price)
    return [News(Kind.PRICE_CHANGED, old, new, rule.words, pct, currency, alert_id=rule.id)]


def crossed(old: Decimal, new: Decimal, rules: Rules) -> Rule | None:
    """The rule under which this step is news; None when it is too small."""
    if old == new:
        return None
    steps = [alert for alert in rules.alerts if alert.kind in AlertRule.STEPS]
    if not steps:
        return _past_thresholds(old, new, rules)
    return next((_as_rule(a) for a in steps if a.armed and _past(a, old, new)), None)


def _past_thresholds(old: Decimal, new: Decimal, rules: Rules) -> Rule | None:
    pct = change_pct(old, new)
    if pct is None or abs(pct) >= rules.threshold_pct:
        return Rule(f"percent ≥ {rules.threshold_pct}")
    if rules.threshold_abs is not None and abs(new - old) >= rules.threshold_abs:
        return Rule(f"absolute ≥ {rules.threshold_abs}")
    return None


def _past(alert: Alert, old: Decimal, new: Decimal) -> bool:
    if alert.direction == (AlertRule.Direction.DOWN if new > old else AlertRule.Direction.UP):
        return False
    if alert.kind == Alerts.ABSOLUTE:
        return abs(new - old) >= alert.value
    pct = change_pct(old, new)
    return alert.kind == Alerts.ANY or pct is None or abs(pct) >= alert.value


def _as_rule(alert: Alert) -> Rule:
    words = {
        Alerts.ANY: "any change",
        Alerts.TARGET_BELOW: f"target ≤ {plain(alert.value)}",
        Alerts.TARGET_ABOVE: f"target ≥ {plain(alert.value)}",
        Alerts.NEW_LOW: "lowest ever",
        Alerts.NEW_HIGH: "highest ever",
        Alerts.STOCK: "stock transition",
    }
    text = words.get(Alerts(alert.kind), f"{alert.kind} ≥ {plain(alert.value)}")
    arrow = {"up": ", up", "down": ", down"}.get(alert.direction, "")
    return Rule(text + arrow, alert)


def _record_news(
    before: State, price: Decimal, currency: str, rules: Rules, *, told: bool
) -> list[News]:
    """A lowest or highest price is told with a step that is news, or under its own rule."""
    news = []
    for kind, alert_kind, record, broken in (
        (Kind.NEW_LOW, Alerts.NEW_LOW, before.lowest, _below(price, before.lowest)),
        (Kind.NEW_HIGH, Alerts.NEW_HIGH, before.highest, _below(before.highest, price)),
    ):
        alert = _armed(rules, alert_kind)
        if record is None or not broken or not (told or alert):
            continue
        rule = _as_rule(alert) if alert else Rule(RECORD_WORDS[kind])
        pct = change_pct(before.notified_price, price)
        news.append(
            News(kind, plain(record), plain(price), rule.words, pct, currency, alert_id=rule.id)
        )
    return news


RECORD_WORDS = {Kind.NEW_LOW: "lowest ever", Kind.NEW_HIGH: "highest ever"}


def _below(one: Decimal | None, other: Decimal | None) -> bool:
    return one is not None and other is not None and one < other


def _armed(rules: Rules, kind: str) -> Alert | None:
    return next((a for a in rules.alerts if a.kind == kind and a.armed), None)


def _target_news(before: State, price: Decimal, currency: str, rules: Rules) -> list[News]:
    old = before.notified_price
    assert old is not None
    news = []
    for alert in rules.alerts:
        below = alert.kind == Alerts.TARGET_BELOW and price <= alert.value < old
        above = alert.kind == Alerts.TARGET_ABOVE and price >= alert.value > old
        if alert.armed and (below or above):
            rule, pct = _as_rule(alert), change_pct(old, price)
            texts = (plain(old), plain(price), rule.words)
            news.append(News(Kind.TARGET_REACHED, *texts, pct, currency, alert_id=alert.id))
            break
    return news


def _judge_stock(before: State, seen: Seen, rules: Rules) -> tuple[list[News], State]:
    if seen.stock == StockStatus.UNKNOWN:
        return [], before
    state = replace(before, stock=seen.stock)
    old = before.notified_stock
    if not old or old == seen.stock:
        return [], replace(state, notified_stock=seen.stock)
    alerts = [alert for alert in rules.alerts if alert.kind == Alerts.STOCK]
    wanted = [alert for alert in alerts if _is_transition(alert, old, seen.stock)]
    if wanted and not any(alert.armed for alert in wanted):
        # Told once it may be told again, if it still holds then.
        return [], state
    if alerts and not wanted:
        return [], replace(state, notified_stock=seen.stock)
    alert_id = next((alert.id for alert in wanted if alert.armed), None)
    return _stock_news(old, seen.stock, alert_id), replace(state, notified_stock=seen.stock)


def _is_transition(alert: Alert, old: str, new: str) -> bool:
    return (not alert.stock_from or old in alert.stock_from) and (
        not alert.stock_to or new in alert.stock_to
    )


def _stock_news(old: str, new: str, alert_id: uuid.UUID | None) -> list[News]:
    news = [News(Kind.STOCK_CHANGED, old, new, "stock transition", alert_id=alert_id)]
    if old in UNAVAILABLE and new in AVAILABLE:
        news.append(News(Kind.BACK_IN_STOCK, old, new, "back in stock", alert_id=alert_id))
    return news


def _told(state: State) -> State:
    return replace(state, notified_price=state.price, notified_currency=state.currency)


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
