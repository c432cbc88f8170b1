from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import DjangoAssertNumQueries

from accounts.models import AuditEntry, Client
from common.ids import uuid7
from tests.factories.crawling import JobFactory, TaskFactory

pytestmark = pytest.mark.django_db
JOBS = "/api/v1/jobs"


def test_a_job_shows_its_progress(reader: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row, running=True, total=8, processed=2, errors=1)
    body = reader.get(f"{JOBS}/{job.pk}").json()
    assert (body["progress"], body["processed"], body["total"], body["errors"]) == (25, 2, 8, 1)
    assert body["duration_seconds"] >= 0
    assert body["completed_at"] is None


def test_a_job_that_waits_has_no_duration(reader: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row)
    assert reader.get(f"{JOBS}/{job.pk}").json()["duration_seconds"] is None


def test_jobs_are_filtered(reader: Any, client_row: Client) -> None:
    website = uuid7()
    job = JobFactory.create(client=client_row, kind="discovery", website_id=website, finished=True)
    JobFactory.create(client=client_row)
    for query in ({"kind": "discovery"}, {"status": "success"}, {"website": str(website)}):
        items = reader.get(JOBS, query).json()["items"]
        assert [item["id"] for item in items] == [str(job.pk)], query


def test_the_tasks_of_a_job_are_listed(reader: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row)
    task = TaskFactory.create(job=job, status="failed", error_category="timeout")
    TaskFactory.create(job=job)
    TaskFactory.create()
    assert len(reader.get(f"{JOBS}/{job.pk}/tasks").json()["items"]) == 2
    (item,) = reader.get(f"{JOBS}/{job.pk}/tasks", {"status": "failed"}).json()["items"]
    assert (item["id"], item["domain"]) == (str(task.pk), task.domain.host)
    assert item["error_category"] == "timeout"


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    reader: Any,
    client_row: Client,
    count: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    job = JobFactory.create(client=client_row)
    JobFactory.create_batch(count - 1, client=client_row)
    TaskFactory.create_batch(count, job=job)
    reader.get(JOBS)
    with django_assert_num_queries(2):
        assert len(reader.get(JOBS).json()["items"]) == count
    with django_assert_num_queries(3):
        assert len(reader.get(f"{JOBS}/{job.pk}/tasks").json()["items"]) == count


def test_a_job_is_cancelled_with_its_tasks(api: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row, running=True)
    task = TaskFactory.create(job=job)
    answer = api.post(f"{JOBS}/{job.pk}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    task.refresh_from_db()
    assert task.status == "cancelled"
    assert AuditEntry.objects.get(verb="cancel").before == {"status": "running"}


def test_a_finished_job_cannot_be_cancelled(api: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row, finished=True)
    answer = api.post(f"{JOBS}/{job.pk}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert "pending, running, paused" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "attr"), [({"kind": "x"}, "kind"), ({"website": "x"}, "website")]
)
def test_a_bad_query_is_named(reader: Any, query: dict[str, str], attr: str) -> None:
    answer = reader.get(JOBS, query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_only_its_own_client_sees_it(
    client: Browser, reader: Any, stranger: Any, client_row: Client
) -> None:
    job = JobFactory.create(client=client_row)
    assert client.get(JOBS).status_code == 401
    assert client.post(f"{JOBS}/{job.pk}/cancel").status_code == 401
    assert reader.post(f"{JOBS}/{job.pk}/cancel").status_code == 403
    assert stranger.get(JOBS).json()["items"] == []
    assert stranger.get(f"{JOBS}/{job.pk}").status_code == 404
    assert stranger.get(f"{JOBS}/{job.pk}/tasks").status_code == 404
    assert stranger.post(f"{JOBS}/{job.pk}/cancel").status_code == 404
    job.refresh_from_db()
    assert job.status == "pending"


def test_a_job_is_paused_and_resumed(api: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row, running=True, total=1)
    task = TaskFactory.create(job=job)
    assert api.post(f"{JOBS}/{job.pk}/pause").json()["status"] == "paused"
    task.refresh_from_db()
    assert task.status == "paused"
    assert api.post(f"{JOBS}/{job.pk}/resume").json()["status"] == "running"
    task.refresh_from_db()
    assert task.status == "pending"


def test_the_failed_pages_of_a_job_are_retried(api: Any, client_row: Client) -> None:
    job = JobFactory.create(client=client_row, status="failed", total=1, processed=1, errors=1)
    TaskFactory.create(job=job, status="failed")
    body = api.post(f"{JOBS}/{job.pk}/retry").json()
    assert (body["status"], body["processed"], body["errors"]) == ("running", 0, 0)
    answer = api.post(f"{JOBS}/{job.pk}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")


@pytest.mark.parametrize(
    ("action", "allowed"),
    [("pause", "pending, running"), ("resume", "paused"), ("retry", "partial_success, failed")],
)
def test_a_job_in_a_wrong_state_is_a_409_that_names_the_right_ones(
    api: Any, reader: Any, stranger: Any, client_row: Client, action: str, allowed: str
) -> None:
    path = f"{JOBS}/{JobFactory.create(client=client_row, finished=True).pk}/{action}"
    answer = api.post(path)
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert allowed in answer.json()["detail"]
    assert reader.post(path).status_code == 403
    assert stranger.post(path).status_code == 404
