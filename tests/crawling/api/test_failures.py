from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import Client
from common.ids import uuid7
from crawling.models import CrawlError, CrawlTask
from tests.crawling.work import failed_job, tasks_of
from tests.factories.accounts import api_for
from tests.factories.crawling import CrawlErrorFactory, TaskFactory

pytestmark = pytest.mark.django_db
ERRORS, DEAD = "/api/v1/errors", "/api/v1/dead-letters"
ONE, TWO, OTHER = "https://a.example/1", "https://a.example/2", "https://b.example/1"


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def test_errors_are_told_in_groups(operator: Any) -> None:
    failed_job(ONE, TWO)
    failed_job(OTHER)
    items = operator.get(ERRORS).json()["items"]
    assert [(item["domain"], item["count"], item["dead_letters"]) for item in items] == [
        ("b.example", 1, 1),
        ("a.example", 2, 2),
    ]
    (item,) = operator.get(ERRORS, {"domain": "a.example", "category": "http"}).json()["items"]
    assert item["sample"] == "the shop answered 404"
    assert operator.get(ERRORS, {"category": "robots"}).json()["items"] == []


def test_groups_come_in_pages(operator: Any) -> None:
    for n in range(5):
        CrawlErrorFactory.create(fingerprint=f"f{n}")
    seen, query = [], {"limit": "2", "count": "true"}
    while True:
        page = operator.get(ERRORS, query).json()
        assert page["total"] == 5
        seen += [item["fingerprint"] for item in page["items"]]
        if not page["has_more"]:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == ["f4", "f3", "f2", "f1", "f0"]


def test_dead_letters_are_listed_and_filtered(operator: Any) -> None:
    failed_job(ONE)
    TaskFactory.create()
    (item,) = operator.get(DEAD).json()["items"]
    assert (item["url"], item["error_category"]) == (ONE, "http")
    fingerprint = CrawlError.objects.get().fingerprint
    for query, found in (
        ({"fingerprint": fingerprint}, 1),
        ({"fingerprint": "x"}, 0),
        ({"domain": "a.example"}, 1),
        ({"category": "timeout"}, 0),
        ({"q": "example/1"}, 1),
    ):
        assert len(operator.get(DEAD, query).json()["items"]) == found, query
    assert operator.get(DEAD, {"status": "pending"}).status_code == 400


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("path", [ERRORS, DEAD])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    operator: Any, path: str, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(count):
        CrawlErrorFactory.create(fingerprint=f"f{n}", task__status="failed")
    operator.get(path)
    with django_assert_num_queries(2):
        assert len(operator.get(path).json()["items"]) == count


def test_a_dead_letter_is_retried_once(operator: Any) -> None:
    (task,) = tasks_of(failed_job(ONE))
    answer = operator.post(f"{DEAD}/{task.pk}/retry")
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    answer = operator.post(f"{DEAD}/{task.pk}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert "failed" in answer.json()["detail"]
    assert operator.post(f"{DEAD}/{uuid7()}/retry").status_code == 404


def test_a_group_is_retried_and_a_dry_run_only_says_so(operator: Any) -> None:
    failed_job(ONE, TWO, OTHER)
    fingerprint = CrawlError.objects.get(task__url=ONE).fingerprint
    body = {"filter": {"fingerprint": fingerprint}, "dry_run": True}
    foreseen = operator.post(f"{DEAD}/bulk", body).json()
    assert foreseen["changed"] == {"failed": 2}
    assert CrawlTask.objects.filter(status="failed").count() == 3
    done = operator.post(f"{DEAD}/bulk", body | {"dry_run": False, "limit": 1}).json()
    assert done["changed"] == {"failed": 1}
    assert CrawlTask.objects.filter(status="pending").count() == 1


def test_failures_are_for_operators(client: Browser, client_row: Client) -> None:
    owner = api_for(client_row, ["admin"])
    for path in (ERRORS, DEAD):
        assert client.get(path).status_code == 401
        assert owner.get(path).status_code == 403
    assert owner.post(f"{DEAD}/bulk", {"filter": {"status": "failed"}}).status_code == 403
