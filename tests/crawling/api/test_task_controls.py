from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import AuditEntry, Client
from common.ids import uuid7
from crawling.models import CrawlTask, LedgerEntry
from tests.crawling.work import claim_all, failed_job, finish, job_with, stored_page, tasks_of
from tests.factories.accounts import api_for
from tests.factories.crawling import CrawlErrorFactory, TaskFactory

pytestmark = pytest.mark.django_db
TASKS = "/api/v1/tasks"
ONE, TWO = "https://a.example/1", "https://a.example/2"


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def test_a_task_is_paused_resumed_and_cancelled(operator: Any) -> None:
    task = TaskFactory.create()
    for action, status in (("pause", "paused"), ("resume", "pending"), ("cancel", "cancelled")):
        answer = operator.post(f"{TASKS}/{task.pk}/{action}")
        assert (answer.status_code, answer.json()["status"]) == (200, status)
    verbs = AuditEntry.objects.filter(object_id=str(task.pk)).order_by("created_at")
    assert list(verbs.values_list("verb", flat=True)) == ["pause", "resume", "cancel"]


@pytest.mark.parametrize(
    ("status", "action", "allowed"),
    [
        ("completed", "pause", "pending, queued, crawling, downloaded, queued_parse"),
        ("completed", "resume", "paused"),
        ("failed", "cancel", "pending, queued, crawling"),
        ("cancelled", "restart", "failed, paused"),
    ],
)
def test_a_wrong_state_is_a_409_that_names_the_right_ones(
    operator: Any, status: str, action: str, allowed: str
) -> None:
    task = TaskFactory.create(status=status)
    answer = operator.post(f"{TASKS}/{task.pk}/{action}")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert status in answer.json()["detail"]
    assert allowed in answer.json()["detail"]


def test_a_failed_task_is_restarted_from_fetch_or_from_its_stored_page(operator: Any) -> None:
    job = failed_job(ONE, TWO)
    one, two = tasks_of(job)
    CrawlTask.objects.filter(pk=two.pk).update(stored_page=stored_page(), retry_count=2)
    body = operator.post(f"{TASKS}/{one.pk}/restart").json()
    assert (body["status"], body["completed_at"]) == ("pending", None)
    refused = operator.post(f"{TASKS}/{one.pk}/restart", {"from": "parse"})
    assert refused.status_code == 409
    wanted = {"from": "parse", "reset_retry_count": False, "priority": 1}
    body = operator.post(f"{TASKS}/{two.pk}/restart", wanted).json()
    assert (body["status"], body["retry_count"], body["priority"]) == ("queued_parse", 2, 1)
    assert operator.get(f"/api/v1/jobs/{job.pk}").json()["status"] == "running"


def test_a_restart_of_a_url_that_waits_elsewhere_is_a_conflict(operator: Any) -> None:
    (dead,) = tasks_of(failed_job(ONE))
    job_with(ONE)
    answer = operator.post(f"{TASKS}/{dead.pk}/restart")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")


def test_a_task_is_changed(operator: Any) -> None:
    task = TaskFactory.create()
    changes = {"priority": 1, "scheduled_at": "2030-01-01T00:00:00Z", "max_retries": 7}
    body = operator.patch(f"{TASKS}/{task.pk}", changes).json()
    assert body | changes == body
    body = operator.patch(f"{TASKS}/{task.pk}", {"crawl_frequency_seconds": 3600}).json()
    assert (body["is_recurring"], body["next_crawl_at"]) == (True, "2030-01-01T01:00:00Z")
    assert AuditEntry.objects.filter(verb="update").count() == 2


def test_a_finished_task_has_no_priority_to_change(operator: Any) -> None:
    task = TaskFactory.create(status="completed")
    answer = operator.patch(f"{TASKS}/{task.pk}", {"priority": 1})
    assert answer.status_code == 409
    assert "pending, queued" in answer.json()["detail"]


def test_a_page_of_a_website_cannot_recur_by_itself(operator: Any) -> None:
    task = TaskFactory.create(website_id=uuid7())
    answer = operator.patch(f"{TASKS}/{task.pk}", {"crawl_frequency_seconds": 3600})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "crawl_frequency_seconds"


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"priority": 11}, "priority"),
        ({"scheduled_at": "soon"}, "scheduled_at"),
        ({"crawl_frequency_seconds": 59}, "crawl_frequency_seconds"),
        ({"max_retries": -1}, "max_retries"),
        ({"status": "completed"}, "status"),
    ],
)
def test_bad_changes_are_named(operator: Any, body: dict[str, Any], attr: str) -> None:
    answer = operator.patch(f"{TASKS}/{TaskFactory.create().pk}", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_many_tasks_are_steered_at_once_and_a_dry_run_only_says_so(operator: Any) -> None:
    job = job_with(ONE, TWO)
    finish(claim_all(1)[0])
    body = {"action": "pause", "filter": {"job": str(job.pk)}, "dry_run": True}
    foreseen = operator.post(f"{TASKS}/bulk", body).json()
    assert foreseen["matched"] == {"pending": 1, "completed": 1}
    assert foreseen["changed"] == {"pending": 1}
    assert not CrawlTask.objects.filter(status="paused").exists()
    done = operator.post(f"{TASKS}/bulk", body | {"dry_run": False}).json()
    assert (done["ids"], done["changed"]) == (foreseen["ids"], foreseen["changed"])
    assert CrawlTask.objects.get(status="paused").pk == CrawlTask.objects.get(pk=done["ids"][0]).pk
    more = {"action": "priority", "priority": 2, "filter": {"domain": "a.example"}}
    assert operator.post(f"{TASKS}/bulk", more).json()["changed"] == {"paused": 1}


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"action": "melt", "filter": {"status": "failed"}}, "action"),
        ({"action": "pause", "filter": {"status": "lost"}}, "filter.status"),
        ({"action": "pause", "filter": {"status": "failed"}, "limit": 0}, "limit"),
        ({"action": "priority", "filter": {"status": "failed"}}, "priority"),
        ({"action": "pause"}, "filter"),
    ],
)
def test_a_bad_bulk_order_is_named(operator: Any, body: dict[str, Any], attr: str) -> None:
    answer = operator.post(f"{TASKS}/bulk", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_a_bulk_order_for_everything_is_refused(operator: Any) -> None:
    assert operator.post(f"{TASKS}/bulk", {"action": "cancel", "filter": {}}).status_code == 400


def test_every_try_of_a_task_is_told(operator: Any) -> None:
    task, now = TaskFactory.create(), timezone.now()
    LedgerEntry.objects.create(
        domain=task.domain,
        task_id=task.pk,
        url=task.url,
        started_at=now,
        rule="delay",
        http_status=500,
        error_category="http",
    )
    CrawlErrorFactory.create(task=task, category="http", message="the shop answered 500")
    CrawlErrorFactory.create(task=task, category="internal", message="poison")
    CrawlErrorFactory.create()
    items = operator.get(f"{TASKS}/{task.pk}/attempts").json()["items"]
    assert [(item["http_status"], item["error_message"]) for item in items] == [
        (None, "poison"),
        (500, "the shop answered 500"),
    ]


def test_tasks_are_found_by_category_and_part_of_the_url(operator: Any) -> None:
    task = TaskFactory.create(error_category="timeout", url="https://shop.example/needle")
    TaskFactory.create()
    for query in ({"category": "timeout"}, {"q": "needle"}):
        (item,) = operator.get(TASKS, query).json()["items"]
        assert item["id"] == str(task.pk)


def test_a_clients_key_steers_no_tasks(client_row: Client) -> None:
    task, owner = TaskFactory.create(client=client_row), api_for(client_row, ["admin"])
    for action in ("pause", "resume", "cancel", "restart"):
        assert owner.post(f"{TASKS}/{task.pk}/{action}").status_code == 403
    assert owner.post(f"{TASKS}/bulk", {}).status_code == 403
    assert owner.patch(f"{TASKS}/{task.pk}", {"priority": 1}).status_code == 403
    task.refresh_from_db()
    assert (task.status, task.priority) == ("pending", 5)
