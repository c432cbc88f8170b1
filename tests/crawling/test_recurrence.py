from __future__ import annotations

import datetime as dt
import threading

import pytest
import time_machine
from django.db import connections
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from accounts.models import AuditEntry
from common.errors import Conflict, Invalid, UrlBlocked
from crawling import control, recurrence, tasks
from crawling.models import CrawlJob, CrawlTask, Domain
from tests.crawling.work import PERMANENT, claim_all, finish, job_with

URL = "http://127.0.0.1:8080/page"
START = dt.datetime(2026, 3, 1, 6, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]


def add(frequency_seconds: int | None = 3600) -> CrawlTask:
    return recurrence.add_recurring(URL, purpose="test", frequency_seconds=frequency_seconds)


def run_now() -> CrawlTask:
    """The waiting run, done: by our clock, since the database's cannot be moved."""
    task = CrawlTask.objects.exclude(status__in=CrawlTask.TERMINAL).get()
    CrawlTask.objects.filter(pk=task.pk).update(status="completed", completed_at=timezone.now())
    return task


def carrier() -> CrawlTask:
    return CrawlTask.objects.get(is_recurring=True)


@given(
    frequency=st.integers(60, 400 * 86_400),
    late=st.integers(0, 10**9),
    micro=st.integers(0, 999_999),
)
def test_the_next_slot_is_the_first_point_of_the_grid_after_now(
    frequency: int, late: int, micro: int
) -> None:
    after = START + dt.timedelta(seconds=late, microseconds=micro)
    slot, passed = recurrence.next_slot(START, frequency, after)
    step = dt.timedelta(seconds=frequency)
    assert slot > after
    assert slot - step <= after
    assert slot == START + passed * step


@given(frequency=st.integers(60, 10**6), early=st.integers(1, 10**6))
def test_a_slot_that_is_still_ahead_stays(frequency: int, early: int) -> None:
    before = START - dt.timedelta(seconds=early)
    assert recurrence.next_slot(START, frequency, before) == (START, 0)


@pytest.mark.django_db
def test_a_url_comes_round_on_its_grid_however_late_each_run_is() -> None:
    with time_machine.travel(START, tick=False) as clock:
        add()
        for hour, minutes_late in enumerate((7, 0, 59), start=1):
            run_now()
            clock.move_to(START + hour * HOUR - dt.timedelta(seconds=1))
            assert recurrence.queue_due() == 0
            clock.move_to(START + hour * HOUR + dt.timedelta(minutes=minutes_late))
            assert recurrence.queue_due() == 1
            assert carrier().status == "pending"
            assert carrier().next_crawl_at == START + (hour + 1) * HOUR
    assert CrawlTask.objects.count() == CrawlJob.objects.count() == 4


@pytest.mark.django_db
def test_an_outage_makes_one_run_not_a_burst(caplog: pytest.LogCaptureFixture) -> None:
    with time_machine.travel(START, tick=False) as clock:
        add()
        run_now()
        clock.move_to(START + 10.5 * HOUR)
        assert [recurrence.queue_due() for _ in range(3)] == [1, 0, 0]
        assert carrier().next_crawl_at == START + 11 * HOUR
    assert "9 slots" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_a_run_that_outlasts_its_slots_waits_for_the_first_one_after_its_end(outcome: str) -> None:
    with time_machine.travel(START, tick=False) as clock:
        add()
        task = carrier()
        clock.move_to(START + 2.5 * HOUR)
        assert recurrence.queue_due() == 0
        end = {"status": outcome, "completed_at": timezone.now()}
        CrawlTask.objects.filter(pk=task.pk).update(**end)
        assert recurrence.queue_due() == 0
        assert carrier().next_crawl_at == START + 3 * HOUR
        clock.move_to(START + 3 * HOUR)
        assert recurrence.queue_due() == 1


@pytest.mark.django_db
def test_retries_and_restarts_do_not_move_the_grid() -> None:
    task = add()
    slot = task.next_crawl_at
    (claim,) = claim_all()
    finish(claim, PERMANENT)
    task.refresh_from_db()
    control.restart(task, scheduled_at=timezone.now() + dt.timedelta(minutes=17))
    assert carrier().next_crawl_at == slot


@pytest.mark.django_db
def test_a_url_without_a_frequency_has_that_of_its_domain() -> None:
    Domain.objects.create(host="127.0.0.1:8080", base_url="x", default_crawl_frequency_seconds=7200)
    assert add(None).crawl_frequency_seconds == 7200


@pytest.mark.django_db
def test_a_run_somebody_else_asked_for_carries_the_flag_on() -> None:
    with time_machine.travel(START, tick=False) as clock:
        add()
        run_now()
        clock.move_to(START + HOUR)
        other = job_with(URL)
        assert recurrence.queue_due() == 0
    assert carrier().job_id == other.pk


@pytest.mark.django_db
def test_what_cannot_recur_is_refused(settings: Settings) -> None:
    with pytest.raises(Invalid, match="Nobody reads"):
        recurrence.add_recurring(URL, purpose="nothing")
    with pytest.raises(Invalid, match="60 to"):
        add(59)
    settings.EGRESS_ALLOWED_NETWORKS = []
    with pytest.raises(UrlBlocked):
        add()
    assert not CrawlTask.objects.exists()


@pytest.mark.django_db
def test_a_url_recurs_once() -> None:
    add()
    with pytest.raises(Conflict, match="recurs already"):
        add(7200)
    assert AuditEntry.objects.get().verb == "add_recurring"


@pytest.mark.django_db
def test_the_frequency_is_changed_on_the_same_grid_and_ended() -> None:
    with time_machine.travel(START, tick=False) as clock:
        task = add()
        clock.move_to(START + 1.2 * HOUR)
        task = control.update_task(task, crawl_frequency_seconds=1800, priority=2)
        assert task.next_crawl_at == START + 1.5 * HOUR
        task = control.update_task(task, crawl_frequency_seconds=None)
    assert (task.is_recurring, task.next_crawl_at, task.priority) == (False, None, 2)
    entry = AuditEntry.objects.get(verb="update", after__has_key="priority")
    assert entry.after == {"crawl_frequency_seconds": 1800, "priority": 2}


@pytest.mark.django_db
def test_a_row_that_will_come_round_is_not_purged() -> None:
    with time_machine.travel(START, tick=False):
        add(90 * 86_400)
        run_now()
    tasks.purge()
    assert CrawlTask.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_beats_make_one_run() -> None:
    add()
    past = timezone.now() - dt.timedelta(minutes=1)
    CrawlTask.objects.update(status="completed", completed_at=past - HOUR, next_crawl_at=past)
    started: list[int] = []
    together = threading.Barrier(4)

    def beat() -> None:
        together.wait()
        started.append(recurrence.queue_due())
        connections.close_all()

    beats = [threading.Thread(target=beat) for _ in range(4)]
    for thread in beats:
        thread.start()
    for thread in beats:
        thread.join()
    assert sum(started) == 1
    assert CrawlTask.objects.filter(status="pending", is_recurring=True).count() == 1
    assert CrawlTask.objects.count() == 2
