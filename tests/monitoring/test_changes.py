from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.changes import Alert, Judgement, Rules, Seen, State, change_pct, judge, plain

RULES = Rules(threshold_pct=Decimal("1.00"))
UNKNOWN = "unknown"


def seen(price: str | None, currency: str = "EUR", stock: str = UNKNOWN) -> Seen:
    return Seen(None if price is None else Decimal(price), currency, stock)


def watch(*looks: Seen, rules: Rules = RULES) -> list[Judgement]:
    state, judgements = State(), []
    for look in looks:
        judgements.append(judge(state, look, rules))
        state = judgements[-1].state
    return judgements


def kinds(judgement: Judgement) -> list[str]:
    return [news.kind for news in judgement.news]


def test_the_first_look_is_a_silent_baseline() -> None:
    assert kinds(watch(seen("10", stock="in_stock"))[0]) == []


def test_a_price_that_moved_between_discovery_and_baseline_is_no_change() -> None:
    found = State(price=Decimal(40), currency="EUR", stock="in_stock")
    first = judge(found, seen("30", stock="out_of_stock"), RULES)
    assert (first.price_changed, first.stock_changed, first.price_change_pct) == (
        False,
        False,
        None,
    )


def test_a_drop_past_the_threshold_is_news_and_a_new_low() -> None:
    last = watch(seen("39.90"), seen("29.90"))[-1]
    assert kinds(last) == ["price_changed", "new_low"]
    assert (last.news[0].old, last.news[0].new, str(last.news[0].pct)) == (
        "39.90",
        "29.90",
        "-25.0627",
    )


def test_a_step_below_the_threshold_is_remembered_but_not_told() -> None:
    last = watch(seen("100"), seen("100.50"))[-1]
    assert kinds(last) == []
    assert last.price_changed
    assert last.price_change_pct == Decimal("0.5")


def test_small_steps_add_up_until_they_are_told() -> None:
    prices = [f"{100 * 1.009**day:.2f}" for day in range(60)]
    told = [j for j in watch(*map(seen, prices)) if kinds(j)]
    assert len(told) >= 25


def test_an_absolute_threshold_tells_what_the_percentage_would_not() -> None:
    rules = Rules(Decimal(50), Decimal(5))
    assert kinds(watch(seen("100"), seen("95"), rules=rules)[-1]) == ["price_changed", "new_low"]
    assert kinds(watch(seen("100"), seen("96"), rules=rules)[-1]) == []


def test_a_missing_price_changes_nothing() -> None:
    last = watch(seen("10"), seen(None))[-1]
    assert last.state.price == 10
    assert kinds(last) == []


def test_a_currency_flip_is_its_own_kind_and_held_back() -> None:
    last = watch(seen("10"), seen("11", currency="USD"))[-1]
    assert kinds(last) == ["currency_changed"]
    assert last.news[0].quarantined
    assert last.price_change_pct is None


def test_a_flip_that_goes_back_moves_no_baseline() -> None:
    looks = watch(seen("10"), seen("11", currency="USD"), seen("5"))
    assert [kinds(look) for look in looks] == [
        [],
        ["currency_changed"],
        ["price_changed", "new_low"],
    ]
    assert looks[2].news[0].old == "10.00"


def test_a_currency_seen_twice_in_a_row_is_the_new_one() -> None:
    looks = watch(
        *(
            seen(p, currency=c)
            for p, c in [("10", "EUR"), ("11", "USD"), ("11", "USD"), ("22", "USD")]
        )
    )
    assert [kinds(look) for look in looks][2:] == [
        ["currency_changed"],
        ["price_changed", "new_high"],
    ]


def test_a_page_that_names_no_currency_keeps_the_known_one() -> None:
    last = watch(seen("10"), seen("10", currency=""))[-1]
    assert not last.price_changed
    assert last.state.currency == "EUR"


def test_selling_out_and_coming_back_are_told() -> None:
    looks = watch(
        seen("10", stock="in_stock"), seen("10", stock="out_of_stock"), seen("10", stock="in_stock")
    )
    assert kinds(looks[1]) == ["stock_changed"]
    assert kinds(looks[2]) == ["stock_changed", "back_in_stock"]


def test_unknown_stock_is_not_sold_out() -> None:
    looks = watch(seen("10", stock="in_stock"), seen("10"), seen("10", stock="in_stock"))
    assert [kinds(look) for look in looks] == [[], [], []]


def test_no_percentage_from_zero() -> None:
    assert change_pct(Decimal(0), Decimal(5)) is None
    assert kinds(watch(seen("0"), seen("5"))[-1]) == ["price_changed", "new_high"]


@pytest.mark.parametrize(
    ("amount", "text"), [("29.9", "29.90"), ("1300", "1300.00"), ("0.125", "0.125")]
)
def test_prices_are_written_with_two_decimals_or_as_many_as_they_have(
    amount: str, text: str
) -> None:
    assert plain(Decimal(amount)) == text


@given(st.lists(st.decimals(min_value=0, max_value=10**9, places=4), min_size=1, max_size=20))
def test_what_was_told_is_never_further_than_the_threshold_from_the_truth(
    prices: list[Decimal],
) -> None:
    for price, judgement in zip(prices, watch(*(seen(str(p)) for p in prices)), strict=True):
        told = judgement.state.notified_price
        assert told is not None
        if judgement.held:
            assert judgement.state.held_price == price
            continue
        pct = change_pct(told, price)
        assert told == price or (pct is not None and abs(pct) < RULES.threshold_pct)


def alert(kind: str, value: str = "0", **options: Any) -> Alert:
    return Alert(uuid.UUID(int=1), kind, Decimal(value), **options)


def ruled(*alerts: Alert) -> Rules:
    return Rules(Decimal("1.00"), alerts=alerts)


def test_a_step_rule_takes_the_place_of_the_threshold_and_keeps_its_direction() -> None:
    rules = ruled(alert("percent", "5", direction="down"))
    assert kinds(watch(seen("100"), seen("97"), rules=rules)[-1]) == []
    assert kinds(watch(seen("100"), seen("110"), rules=rules)[-1]) == []
    assert kinds(watch(seen("100"), seen("94"), rules=rules)[-1]) == ["price_changed", "new_low"]


def test_a_target_is_told_when_it_is_crossed_and_not_again_below_it() -> None:
    rules = ruled(alert("percent", "50"), alert("target_below", "95"))
    looks = watch(*map(seen, ["100", "94", "93", "96", "94.5"]), rules=rules)
    assert [kinds(look) for look in looks[:3]] == [[], ["target_reached"], []]
    # It must have been told above the target before it is told below it again.
    assert kinds(looks[4]) == []


def test_any_new_low_is_told_under_its_own_rule_however_small() -> None:
    rules = ruled(alert("new_low"))
    assert kinds(watch(seen("100"), seen("99.90"), rules=rules)[-1]) == ["new_low"]


def test_a_resting_rule_is_quiet_and_the_difference_is_told_when_it_is_armed_again() -> None:
    resting = ruled(alert("percent", "1", armed=False))
    quiet = watch(seen("100"), seen("90"), rules=resting)[-1]
    assert kinds(quiet) == []
    later = judge(quiet.state, seen("90"), ruled(alert("percent", "1")))
    assert kinds(later) == ["price_changed"]


def test_only_the_stock_transitions_asked_for_are_told() -> None:
    rules = ruled(alert("stock", stock_to=frozenset({"in_stock"})))
    states = ("in_stock", "out_of_stock", "in_stock")
    looks = watch(*(seen("10", stock=stock) for stock in states), rules=rules)
    assert [kinds(look) for look in looks] == [[], [], ["stock_changed", "back_in_stock"]]


def test_a_rule_that_wants_confirmation_holds_a_plain_step() -> None:
    rules = ruled(alert("percent", "1", confirm=True))
    looks = watch(seen("100"), seen("90"), seen("90"), rules=rules)
    assert looks[1].held
    assert looks[1].state.price == 100
    assert looks[2].confirmed
    assert [news.quarantined for news in looks[2].news] == [False, False]


@pytest.mark.parametrize("price", ["1000", "10000", "0.00", "119.00", "84.03", "8.33", "620"])
def test_an_implausible_price_moves_nothing_until_it_is_seen_again(price: str) -> None:
    looks = watch(seen("100"), seen(price), seen(price))
    assert looks[1].held
    assert looks[1].state.price == looks[1].state.notified_price == 100
    assert not looks[1].price_changed
    assert all(news.quarantined for news in looks[1].news)
    assert looks[2].confirmed
    assert looks[2].state.price == Decimal(price)
    assert "price_changed" in kinds(looks[2])


def test_an_implausible_price_that_is_gone_at_the_second_look_is_refuted() -> None:
    looks = watch(seen("100"), seen("1.00"), seen("100"))
    assert looks[2].refuted
    assert kinds(looks[2]) == []
    assert looks[2].state.held_price is None
    assert looks[2].state.lowest == 100


@pytest.mark.parametrize("price", ["80", "75", "50", "110", "150", "99.99", "119.50"])
def test_an_everyday_step_is_believed_at_once(price: str) -> None:
    assert not watch(seen("100"), seen(price))[-1].held
