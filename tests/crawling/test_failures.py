from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from common.errors import InvalidState
from crawling import failures
from crawling.fetching import Failure
from crawling.models import CrawlError, CrawlTask
from crawling.selections import TaskFilter
from tests.crawling.work import PERMANENT, claim_all, failed_job, finish, job_with, tasks_of
from tests.factories.crawling import CrawlErrorFactory, DomainFactory

pytestmark = pytest.mark.django_db
ONE, TWO, OTHER = "https://a.example/1", "https://a.example/2", "https://b.example/1"
GONE = Failure("http", "the shop answered 410", transient=False)
FORBIDDEN = Failure("robots", "robots.txt of the shop forbids this page", transient=False)


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def fail(*ends: tuple[str, Failure]) -> None:
    job_with(*(url for url, _ in ends))
    failure = dict(ends)
    for claim in claim_all():
        finish(claim, failure[claim.url])


def test_the_same_trouble_of_one_domain_is_one_group(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    fail((ONE, PERMANENT), (TWO, GONE), (OTHER, PERMANENT))
    with django_assert_num_queries(1):
        groups = list(failures.error_groups(CrawlError.objects.all()))
    assert {(g.host, g.category, g.count, g.dead) for g in groups} == {
        ("a.example", "http", 2, 2),
        ("b.example", "http", 1, 1),
    }


def test_a_group_knows_its_first_its_last_and_the_newest_message() -> None:
    domain, now = DomainFactory.create(), timezone.now()
    for age in (3, 1, 2):
        CrawlErrorFactory.create(
            task__domain=domain,
            message=f"{age} h old",
            occurred_at=now - dt.timedelta(hours=age),
        )
    (group,) = failures.error_groups(CrawlError.objects.all())
    assert (group.count, group.dead, group.sample) == (3, 0, "1 h old")
    assert group.last_at - group.first_at == dt.timedelta(hours=2)


def test_one_dead_letter_is_tried_again() -> None:
    (task,) = tasks_of(failed_job(ONE))
    assert list(failures.dead_letters()) == [task]
    assert failures.retry(task).status == "pending"
    assert not failures.dead_letters().exists()
    with pytest.raises(InvalidState, match="must be: failed"):
        failures.retry(task)


def test_a_group_of_dead_letters_is_tried_again_and_no_other() -> None:
    fail((ONE, PERMANENT), (TWO, FORBIDDEN), (OTHER, PERMANENT))
    fingerprint = CrawlError.objects.get(task__url=ONE).fingerprint
    foreseen = failures.retry_group(fingerprint, dry_run=True)
    assert failures.dead_letters().count() == 3
    outcome = failures.retry_group(fingerprint)
    assert outcome.ids == foreseen.ids == [CrawlTask.objects.get(url=ONE).pk]
    assert set(failures.dead_letters().values_list("url", flat=True)) == {TWO, OTHER}


def test_dead_letters_are_tried_again_by_filter_up_to_a_limit() -> None:
    fail((ONE, PERMANENT), (TWO, GONE), (OTHER, PERMANENT))
    assert failures.retry_many(TaskFilter(domain="a.example"), limit=1).changed == {"failed": 1}
    assert failures.retry_many(TaskFilter(domain="a.example")).changed == {"failed": 1}
    assert failures.dead_letters().get().url == OTHER
