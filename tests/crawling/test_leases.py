from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pytest
from django.utils import timezone
from pytest_django import Settings

from crawling import frontier, leases
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.handover import hand_over
from crawling.models import CrawlError, CrawlJob, CrawlTask, Domain
from tests.crawling.work import claim_all, expire_all

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_leases.accept_all"}
    settings.JOB_CONSUMERS = {}


def accept_all(pages: Sequence[Page]) -> object:
    return lambda accepted: {}


def job_with(*urls: str) -> CrawlJob:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    return job


def claim_one() -> leases.Claim:
    domain = Domain.objects.get()
    return leases.claim_tasks({domain.pk: 1})[0]


def expire(claim: leases.Claim) -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    CrawlTask.objects.filter(pk=claim.id).update(leased_until=past)


def page(claim: leases.Claim) -> Page:
    return Page(claim, timezone.now(), status=200, url=claim.url, body=b"x")


def test_a_domain_belongs_to_one_worker_at_a_time() -> None:
    job_with("https://a.example/1", "https://b.example/1")
    assert len(leases.lease_domains("one", 10)) == 2
    assert leases.lease_domains("two", 10) == []
    Domain.objects.update(leased_until=timezone.now() - dt.timedelta(seconds=1))
    assert len(leases.lease_domains("two", 10)) == 2
    assert leases.renew("one", list(Domain.objects.values_list("id", flat=True)), []) == set()


@pytest.mark.parametrize(
    "state",
    [
        {"is_active": False},
        {"is_blocked": True},
        {"next_allowed_at": dt.datetime(9000, 1, 1, tzinfo=dt.UTC)},
    ],
)
def test_a_domain_that_must_rest_is_not_leased(state: dict[str, object]) -> None:
    job_with("https://a.example/1")
    Domain.objects.update(**state)
    assert leases.lease_domains("one", 10) == []
    assert not leases.has_due_domain()


def test_urgent_tasks_come_first() -> None:
    job_with("https://a.example/1", "https://a.example/2", "https://a.example/3")
    CrawlTask.objects.filter(url__endswith="2").update(priority=1)
    domain = Domain.objects.get()
    claims = leases.claim_tasks({domain.pk: 2})
    assert claims[0].url.endswith("2")
    assert len(claims) == 2


def test_a_task_waits_once_however_often_it_is_asked_for() -> None:
    job_with("https://a.example/1?utm_source=x", "https://a.example/1")
    job_with("https://a.example/1#top")
    assert CrawlTask.objects.count() == 1


def test_a_finished_task_does_not_stop_the_next_crawl_of_its_url() -> None:
    job_with("https://a.example/1")
    assert hand_over([page(claim_one())]) == 1
    job_with("https://a.example/1")
    assert CrawlTask.objects.filter(status="pending").count() == 1


def test_a_dead_workers_task_runs_again_and_the_dead_worker_writes_nothing() -> None:
    job = job_with("https://a.example/1")
    first = claim_one()
    expire(first)
    assert leases.return_expired() == 1
    second = claim_one()
    assert hand_over([page(first)]) == 0
    assert hand_over([page(second)]) == 1
    assert hand_over([page(second)]) == 0
    job.refresh_from_db()
    assert (job.status, job.processed, job.errors) == ("success", 1, 0)


def test_a_page_that_kills_three_workers_goes_to_the_dead_letters() -> None:
    job = job_with("https://a.example/1")
    for _ in range(leases.MAX_CLAIMS):
        claim = claim_one()
        leases.begin(claim)
        expire(claim)
        leases.return_expired()
    task = CrawlTask.objects.get()
    assert (task.status, task.error_category) == ("failed", "internal")
    assert CrawlError.objects.get().message == leases.POISON
    job.refresh_from_db()
    assert (job.status, job.errors) == ("failed", 1)


def test_pages_that_only_waited_when_the_worker_died_are_not_blamed() -> None:
    job_with(*(f"https://a.example/{n}" for n in range(5)))
    for _ in range(leases.MAX_CLAIMS + 1):
        claims = {claim.url: claim for claim in claim_all()}
        if killer := claims.get("https://a.example/3"):
            leases.begin(killer)
        expire_all()
        leases.return_expired()
    assert CrawlTask.objects.get(status="failed").url == "https://a.example/3"
    assert CrawlTask.objects.filter(status="pending").count() == 4


def test_claims_given_back_count_for_nothing() -> None:
    job_with("https://a.example/1")
    for _ in range(leases.MAX_CLAIMS + 1):
        leases.return_tasks([claim_one()])
    assert CrawlTask.objects.get().status == "pending"
    assert leases.return_expired() == 0


def test_a_cancelled_task_is_dropped_when_its_page_comes_back() -> None:
    from crawling import jobs

    job = job_with("https://a.example/1")
    claim = claim_one()
    jobs.cancel(job)
    assert hand_over([page(claim)]) == 0
    assert CrawlTask.objects.get().status == "cancelled"


def test_one_bad_page_does_not_spoil_its_batch(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_leases.refuse_two"}
    job = job_with("https://a.example/1", "https://a.example/2", "https://a.example/3")
    claims = leases.claim_tasks({Domain.objects.get().pk: 3})
    hand_over([page(claim) for claim in claims])
    states = dict(CrawlTask.objects.values_list("url", "status"))
    assert states == {
        "https://a.example/1": "completed",
        "https://a.example/2": "failed",
        "https://a.example/3": "completed",
    }
    job.refresh_from_db()
    assert (job.status, job.processed, job.errors) == ("partial_success", 3, 1)


def refuse_two(pages: Sequence[Page]) -> object:
    def store(accepted: object) -> dict[object, object]:
        if any(page.url.endswith("2") for page in pages):
            raise ValueError("cannot store this")
        return {}

    return store
