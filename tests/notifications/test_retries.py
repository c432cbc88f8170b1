from __future__ import annotations

import datetime as dt

import pytest

from common.retry_after import retry_after_seconds
from notifications.models import Delivery
from notifications.retries import Verdict, judge

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SCHEDULE = [5, 300, 1800]


def verdict(number: int = 1, status: int | None = None, retry_after: str = "") -> Verdict:
    return judge(
        number=number, http_status=status, retry_after=retry_after, schedule=SCHEDULE, now=NOW
    )


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_success(status: int) -> None:
    assert verdict(status=status).status == Delivery.Status.SUCCESS


@pytest.mark.parametrize("status", [None, 100, 301, 308, 400, 404, 500, 599])
def test_anything_else_is_tried_again(status: int | None) -> None:
    assert verdict(status=status).status == Delivery.Status.RETRYING


@pytest.mark.parametrize(("number", "seconds"), [(1, 5), (2, 300), (3, 1800)])
def test_each_try_waits_for_its_step_give_or_take_a_tenth(number: int, seconds: int) -> None:
    delays = [verdict(number, 500).delay_seconds for _ in range(50)]
    assert all(seconds * 0.9 <= delay <= seconds * 1.1 for delay in delays)
    assert len(set(delays)) > 1


def test_after_the_last_step_it_is_given_up() -> None:
    assert verdict(4, 500).status == Delivery.Status.EXHAUSTED


def test_gone_gives_up_at_once_and_disables() -> None:
    gone = verdict(1, 410)
    assert gone.status == Delivery.Status.EXHAUSTED
    assert gone.disable_reason


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_may_say_when(status: int) -> None:
    assert verdict(1, status, "120").delay_seconds == 120


def test_only_429_and_503_may_say_when() -> None:
    assert verdict(1, 500, "120").delay_seconds < 6


def test_at_once_is_not_before_the_first_step() -> None:
    assert verdict(2, 429, "0").delay_seconds == 5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        (" 7 ", 7.0),
        ("99999999999999999999", 86400.0),
        ("Sun, 01 Mar 2026 12:02:00 GMT", 120.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2099 11:00:00 GMT", 86400.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("Sun, 99 Mar 2026 11:00:00 GMT", None),
        ("Sun, 01 Mar 99999999999 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_at_most_a_day(
    text: str, seconds: float | None
) -> None:
    assert retry_after_seconds(text, now=NOW) == seconds
