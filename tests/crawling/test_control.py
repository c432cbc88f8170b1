from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import AuditEntry
from common.errors import Conflict, Invalid, InvalidState
from crawling import control, leases, parsing
from crawling.control import Order
from crawling.models import CrawlError, CrawlJob, CrawlTask
from crawling.selections import TaskFilter
from tests.crawling.work import (
    claim_all,
    expire_all,
    failed_job,
    finish,
    job_with,
    stored_page,
    tasks_of,
)

pytestmark = pytest.mark.django_db
ONE, TWO, THREE = (f"https://a.example/{n}" for n in (1, 2, 3))


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def fresh(row: CrawlJob) -> CrawlJob:
    row.refresh_from_db()
    return row


def in_state(status: str) -> CrawlTask:
    (task,) = tasks_of(job_with(ONE))
    CrawlTask.objects.filter(pk=task.pk).update(status=status)
    task.refresh_from_db()
    return task


def test_a_paused_task_is_not_claimed_and_a_resumed_one_is() -> None:
    (task,) = tasks_of(job_with(ONE))
    assert control.pause(task).status == "paused"
    assert claim_all() == []
    assert control.resume(task).status == "pending"
    assert len(claim_all()) == 1


def test_a_task_paused_in_flight_drops_its_page_and_is_fetched_again_after_resume() -> None:
    job = job_with(ONE)
    (claim,) = claim_all()
    (task,) = tasks_of(job)
    control.pause(task)
    assert leases.lost([claim]) == {claim.id}
    assert finish(claim) == 0
    control.resume(task)
    (again,) = claim_all()
    assert (finish(claim), finish(again)) == (0, 1)
    assert fresh(job).processed == 1


@pytest.mark.parametrize("left", ["downloaded", "queued_parse"])
def test_a_task_paused_after_its_download_goes_on_with_the_stored_page(left: str) -> None:
    task = in_state(left)
    CrawlTask.objects.filter(pk=task.pk).update(stored_page=stored_page())
    control.pause(task)
    assert control.resume(task).status == "queued_parse"
    assert parsing.has_due()


def test_a_task_whose_stored_page_is_gone_is_fetched_again() -> None:
    task = in_state("queued_parse")
    control.pause(task)
    assert control.resume(task).status == "pending"
    assert not parsing.has_due()


@pytest.mark.parametrize(
    ("state", "act", "says"),
    [
        ("completed", control.pause, "pending, queued, crawling, downloaded, queued_parse"),
        ("pending", control.resume, "must be one of: paused"),
        ("cancelled", control.cancel, "pending, queued, crawling"),
        ("pending", control.restart, "queued, crawling, downloaded, parsing, failed, paused"),
        ("failed", lambda task: control.set_priority(task, 1), "pending, queued"),
    ],
)
def test_a_wrong_state_is_refused_and_the_right_ones_named(
    state: str, act: Callable[[CrawlTask], object], says: str
) -> None:
    task = in_state(state)
    with pytest.raises(InvalidState, match=f"is {state} cannot") as refused:
        act(task)
    assert says in refused.value.detail
    task.refresh_from_db()
    assert task.status == state
    assert not AuditEntry.objects.exists()


def test_cancelling_the_last_open_task_ends_the_job() -> None:
    job = job_with(ONE, TWO)
    finish(claim_all(1)[0])
    for task in tasks_of(job):
        if task.status != "completed":
            control.cancel(task)
    assert (fresh(job).status, job.processed, job.errors) == ("success", 1, 0)


def test_a_job_whose_tasks_were_all_cancelled_is_cancelled() -> None:
    job = job_with(ONE)
    control.cancel(tasks_of(job)[0])
    assert fresh(job).status == "cancelled"


def test_restarting_a_task_of_a_finished_job_reopens_the_job_and_keeps_its_counters_right() -> None:
    job = failed_job(ONE, TWO)
    assert (job.status, job.processed, job.errors) == ("failed", 2, 2)
    control.restart(tasks_of(job)[0], priority=1)
    assert (fresh(job).status, job.processed, job.errors) == ("running", 1, 1)
    assert job.completed_at is None
    (claim,) = claim_all()
    finish(claim)
    assert (fresh(job).status, job.processed, job.errors) == ("partial_success", 2, 1)
    task = tasks_of(job)[0]
    assert (task.status, task.priority, task.error_category) == ("completed", 1, "")


def test_a_restart_may_wait_and_keep_its_tries() -> None:
    task = tasks_of(failed_job(ONE))[0]
    CrawlTask.objects.filter(pk=task.pk).update(retry_count=3)
    later = timezone.now() + dt.timedelta(hours=1)
    control.restart(task, reset_retry_count=False, scheduled_at=later)
    assert (task.retry_count, task.scheduled_at) == (3, later)
    assert claim_all() == []


def test_a_restart_in_flight_fences_the_old_claim_off() -> None:
    job = job_with(ONE)
    (old,) = claim_all()
    control.restart(tasks_of(job)[0])
    (new,) = claim_all()
    assert leases.lost([old]) == {old.id}
    assert (finish(old), finish(new)) == (0, 1)


def test_a_restart_from_parse_needs_a_stored_page() -> None:
    task = tasks_of(failed_job(ONE))[0]
    with pytest.raises(InvalidState, match="restart it from fetch"):
        control.restart(task, from_="parse")
    CrawlTask.objects.filter(pk=task.pk).update(stored_page=stored_page())
    assert control.restart(task, from_="parse").status == "queued_parse"
    assert parsing.has_due()
    assert claim_all() == []


def test_a_dead_task_does_not_come_back_while_its_url_waits_elsewhere() -> None:
    (dead,) = tasks_of(failed_job(ONE))
    job_with(ONE)
    with pytest.raises(Conflict, match="already waits"):
        control.restart(dead)
    assert control.bulk(Order(action="restart"), TaskFilter(status="failed")).ids == []


def test_of_two_dead_tasks_of_one_url_one_comes_back() -> None:
    failed_job(ONE)
    failed_job(ONE)
    outcome = control.bulk(Order(action="restart"), TaskFilter(status="failed"))
    assert len(outcome.ids) == 1
    assert CrawlTask.objects.filter(status="pending").count() == 1


def test_priority_decides_who_comes_first() -> None:
    job = job_with(ONE, TWO)
    control.set_priority(tasks_of(job)[1], 1)
    assert claim_all(1)[0].url == TWO


def test_a_dry_run_says_what_the_run_does_and_changes_nothing() -> None:
    job = job_with(ONE, TWO, THREE)
    claim_all(1)
    CrawlTask.objects.filter(url=THREE).update(status="completed")
    order, chosen = Order(action="pause"), TaskFilter(job=job.pk)
    foreseen = control.bulk(order, chosen, dry_run=True)
    assert foreseen.changed == {"pending": 1, "crawling": 1}
    assert foreseen.matched == {"pending": 1, "crawling": 1, "completed": 1}
    assert not CrawlTask.objects.filter(status="paused").exists()
    assert not AuditEntry.objects.exists()
    done = control.bulk(order, chosen)
    assert (done.ids, done.changed) == (foreseen.ids, foreseen.changed)
    assert set(CrawlTask.objects.values_list("status", flat=True)) == {"paused", "completed"}
    assert AuditEntry.objects.filter(verb="pause").count() == 2


def test_a_bulk_run_stops_at_its_limit() -> None:
    job = job_with(ONE, TWO, THREE)
    outcome = control.bulk(Order(action="cancel"), TaskFilter(job=job.pk), limit=2)
    assert len(outcome.ids) == 2
    assert fresh(job).status == "pending"
    control.bulk(Order(action="cancel"), TaskFilter(domain="a.example"))
    assert fresh(job).status == "cancelled"


def test_a_bulk_restart_reopens_every_job_it_touches() -> None:
    jobs = [failed_job(ONE), failed_job(TWO)]
    chosen = TaskFilter(category="http", q="a.example")
    outcome = control.bulk(Order(action="restart"), chosen)
    assert outcome.changed == {"failed": 2}
    assert [(fresh(job).status, job.processed, job.errors) for job in jobs] == [
        ("running", 0, 0)
    ] * 2


def test_the_rest_of_an_order_is_checked() -> None:
    with pytest.raises(Invalid, match="at least one filter"):
        control.bulk(Order(action="cancel"), TaskFilter())
    with pytest.raises(Invalid, match="1 to 10000"):
        control.bulk(Order(action="cancel"), TaskFilter(status="failed"), limit=0)
    for bad in ({"action": "melt"}, {"action": "priority"}, {"action": "restart", "priority": 11}):
        with pytest.raises(Invalid):
            Order(**bad)


def test_a_dead_parsers_task_goes_back_to_its_stored_page_and_at_last_to_the_dead_letters() -> None:
    task = in_state("queued_parse")
    row = CrawlTask.objects.filter(pk=task.pk)
    row.update(stored_page=stored_page())
    for claims in range(1, leases.MAX_CLAIMS + 1):
        row.update(status="parsing", claims=claims, leased_until=timezone.now())
        expire_all()
        leases.return_expired()
        task.refresh_from_db()
        assert task.status == ("queued_parse" if claims < leases.MAX_CLAIMS else "failed")
    assert CrawlError.objects.get().message == leases.POISON
