from __future__ import annotations

import pytest
from pytest_django import Settings

from accounts.models import AuditEntry
from common.errors import Conflict, InvalidState
from crawling import job_control
from crawling.models import CrawlJob
from tests.crawling.work import claim_all, failed_job, finish, job_with, tasks_of

pytestmark = pytest.mark.django_db
ONE, TWO = "https://a.example/1", "https://a.example/2"


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def states(job: CrawlJob) -> list[str]:
    job.refresh_from_db()
    return [job.status, *(task.status for task in tasks_of(job))]


def test_a_job_is_paused_and_resumed_with_its_tasks() -> None:
    job = job_with(ONE, TWO)
    finish(claim_all(1)[0])
    job_control.pause_job(job)
    assert sorted(states(job)) == ["completed", "paused", "paused"]
    assert claim_all() == []
    job_control.resume_job(job)
    assert sorted(states(job)) == ["completed", "pending", "running"]
    finish(claim_all()[0])
    assert states(job) == ["success", "completed", "completed"]
    assert AuditEntry.objects.filter(object_id=str(job.pk)).count() == 2


def test_a_job_that_never_started_waits_again_after_a_pause() -> None:
    job = job_with(ONE)
    job_control.pause_job(job)
    assert job_control.resume_job(job).status == "pending"


def test_the_failed_pages_of_a_job_are_tried_again() -> None:
    job = failed_job(ONE, TWO)
    assert job_control.retry_job(job).status == "running"
    assert states(job) == ["running", "pending", "pending"]
    for claim in claim_all():
        finish(claim)
    assert states(job) == ["success", "completed", "completed"]
    assert (job.processed, job.errors) == (2, 0)


def test_a_job_in_another_state_says_which_would_do() -> None:
    job = failed_job(ONE)
    with pytest.raises(InvalidState, match="only: pending, running"):
        job_control.pause_job(job)
    with pytest.raises(InvalidState, match="only: paused"):
        job_control.resume_job(job)
    waiting = job_with(TWO)
    with pytest.raises(InvalidState, match="only: running, partial_success, failed"):
        job_control.retry_job(waiting)
    claim_all()
    with pytest.raises(InvalidState, match="nothing to retry"):
        job_control.retry_job(waiting)


def test_a_job_whose_pages_wait_elsewhere_is_not_retried() -> None:
    job = failed_job(ONE)
    job_with(ONE)
    with pytest.raises(Conflict):
        job_control.retry_job(job)
    assert states(job) == ["failed", "failed"]
