from __future__ import annotations

import time_machine

from crawling.breaker import WINDOW_SECONDS, Breaker
from crawling.models import Domain
from tests.factories.crawling import DomainFactory


def closed(threshold: int = 3) -> Breaker:
    return Breaker(threshold=threshold, timeout_s=300)


def after(breaker: Breaker) -> Breaker:
    """As the next visit meets it."""
    domain: Domain = DomainFactory.build(breaker_threshold=3, **breaker.columns())
    return Breaker.of(domain)


def fail(breaker: Breaker, times: int) -> Breaker:
    for _ in range(times):
        breaker.failed()
    return breaker


def test_failures_open_it_although_successes_come_between() -> None:
    breaker = closed()
    for _ in range(2):
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.is_open


def test_a_host_that_mostly_answers_stays_closed() -> None:
    breaker = closed()
    for _ in range(10):
        breaker.succeeded()
    assert not fail(breaker, 9).is_open


def test_old_failures_are_forgotten_also_across_visits() -> None:
    with time_machine.travel(0, tick=False) as clock:
        breaker = after(fail(closed(), 2))
        assert breaker.failures == 2
        clock.shift(WINDOW_SECONDS + 10)
        assert not fail(breaker, 1).is_open
        assert after(breaker).failures == 1


def test_who_visits_an_open_circuit_probes_and_a_success_closes_it() -> None:
    breaker = after(fail(closed(), 3))
    assert breaker.probing
    breaker.succeeded()
    assert (breaker.state, breaker.openings, breaker.opened_at) == ("closed", 0, None)
    assert not fail(breaker, 2).is_open


def test_a_failed_probe_opens_it_for_twice_as_long_up_to_an_hour() -> None:
    breaker, waits = fail(closed(), 3), []
    for _ in range(6):
        waits.append(breaker.wait_seconds)
        breaker = fail(after(breaker), 1)
    assert waits == [300, 600, 1200, 2400, 3600, 3600]


def test_answers_on_their_way_change_nothing_while_it_is_open() -> None:
    breaker = fail(closed(), 3)
    fail(breaker, 4)
    breaker.succeeded()
    assert (breaker.is_open, breaker.openings) == (True, 1)
