from __future__ import annotations

import asyncio
import datetime as dt
import time
from itertools import pairwise

import pytest
from django.utils import timezone

from crawling.pacing import Pace, Turn
from tests.factories.crawling import DomainFactory

SOON = 30.0


def take(pace: Pace, count: int, seconds: float = SOON) -> list[Turn | None]:
    async def run() -> list[Turn | None]:
        deadline = time.monotonic() + seconds
        return await asyncio.gather(*(pace.turn(deadline) for _ in range(count)))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("pace", "gap", "rule"),
    [
        (Pace(delay=0.05, rate=100, crawl_delay=0.01), 0.05, "domain"),
        (Pace(delay=0.01, rate=20, crawl_delay=0.01), 0.05, "rate"),
        (Pace(delay=0.01, rate=100, crawl_delay=0.05), 0.05, "crawl-delay"),
        (Pace(delay=0.01, throttle=0.04), 0.05, "throttle"),
        (Pace(), 0.0, "none"),
    ],
)
def test_the_longest_rule_makes_the_gap_and_is_named(pace: Pace, gap: float, rule: str) -> None:
    first, *others = take(pace, 4)
    assert first is not None
    assert (first.gap_seconds, first.rule) == (None, "none")
    for turn in others:
        assert turn is not None
        assert turn.wanted_gap_seconds == pytest.approx(gap)
        assert turn.gap_seconds is not None
        assert turn.gap_seconds >= gap
        assert turn.rule == rule


def test_a_late_request_never_shortens_the_next_gap() -> None:
    async def run() -> list[float]:
        pace, deadline, starts = Pace(delay=0.1), time.monotonic() + SOON, []
        for busy in (0.0, 0.08, 0.0, 0.0):
            waiting = asyncio.ensure_future(pace.turn(deadline))
            await asyncio.sleep(0)
            time.sleep(busy + 0.05)
            await waiting
            starts.append(time.monotonic())
        return starts

    starts = asyncio.run(run())
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert min(gaps) >= 0.1 - 0.002


def test_a_slot_past_the_deadline_is_not_taken() -> None:
    assert take(Pace(delay=60), 2, seconds=1)[1] is None


def test_a_crawl_delay_counts_up_to_a_minute() -> None:
    assert Pace(crawl_delay=3600).gap == 60


def test_the_gap_is_kept_from_one_holder_to_the_next_also_when_it_was_raised() -> None:
    domain = DomainFactory.build(crawl_delay_seconds=0.3, last_request_at=timezone.now())
    (turn,) = take(Pace.of(domain), 1)
    assert turn is not None
    assert turn.gap_seconds is not None
    assert turn.gap_seconds >= 0.3


def test_a_request_for_quiet_doubles_to_an_hour_also_across_visits() -> None:
    waits, backoff = [], 0.0
    for _ in range(8):
        pace = Pace(backoff=backoff)
        pace.back_off(None)
        waits.append(round(pace.wait_seconds))
        backoff = pace.backoff
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_answers_that_come_together_ask_for_quiet_once() -> None:
    pace = Pace()
    for _ in range(4):
        pace.back_off(None)
    assert round(pace.wait_seconds) == 60


def test_what_the_host_asks_for_counts_and_is_named_across_visits() -> None:
    pace = Pace()
    take(pace, 1)
    pace.back_off(0.4)
    domain = DomainFactory.build(next_allowed_at=pace.next_allowed_at, **pace.columns())
    domain.crawl_delay_seconds = 0
    domain.throttle_seconds = 0
    (turn,) = take(Pace.of(domain), 1)
    assert turn is not None
    assert turn.rule == "retry-after"
    assert turn.gap_seconds is not None
    assert turn.gap_seconds >= turn.wanted_gap_seconds >= 0.39


def test_a_slow_shop_is_asked_less_often_and_recovers() -> None:
    pace = Pace(delay=1, response_ms=100)
    pace.learn_good(2100)
    assert pace.gap == pytest.approx(3)
    grown = pace.gap
    for _ in range(20):
        pace.learn_good(120)
    assert grown > pace.gap == 1


def test_ordinary_jitter_is_no_reason_to_slow_down() -> None:
    pace = Pace(delay=1, response_ms=20)
    for elapsed in (15, 60, 150, 30, 200):
        pace.learn_good(elapsed)
    assert pace.gap == 1


def test_an_error_lengthens_the_gap_and_never_shortens_it() -> None:
    pace = Pace(delay=1)
    gaps = []
    for _ in range(12):
        pace.learn_error()
        gaps.append(pace.gap)
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (1.5, 61)


def test_the_next_holder_is_told_when_it_may_ask() -> None:
    pace = Pace(delay=5)
    take(pace, 1)
    told = pace.next_allowed_at
    assert told is not None
    wait = told - timezone.now()
    assert dt.timedelta(seconds=4) < wait <= dt.timedelta(seconds=5)
