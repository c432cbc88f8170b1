from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import DjangoAssertNumQueries

from accounts.models import Client
from common.ids import uuid7
from tests.factories.accounts import api_for
from tests.factories.crawling import TaskFactory

pytestmark = pytest.mark.django_db
TASKS = "/api/v1/tasks"


def test_an_operator_sees_the_tasks_of_all(operator: Any) -> None:
    task, other = TaskFactory.create(status="failed"), TaskFactory.create()
    assert len(operator.get(TASKS).json()["items"]) == 2
    for query in (
        {"status": "failed"},
        {"job": str(task.job_id)},
        {"domain": task.domain.host},
    ):
        items = operator.get(TASKS, query).json()["items"]
        assert [item["id"] for item in items] == [str(task.pk)], query
    assert operator.get(f"{TASKS}/{other.pk}").json()["url"] == other.url
    assert operator.get(f"{TASKS}/{uuid7()}").status_code == 404


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    operator: Any, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    TaskFactory.create_batch(count)
    operator.get(TASKS)
    with django_assert_num_queries(2):
        assert len(operator.get(TASKS).json()["items"]) == count


def test_a_bad_query_is_named(operator: Any) -> None:
    answer = operator.get(TASKS, {"status": "lost"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "status"


def test_a_client_is_told_that_this_is_for_operators(client: Browser, client_row: Client) -> None:
    task = TaskFactory.create()
    owner = api_for(client_row, ["admin"])
    assert client.get(TASKS).status_code == 401
    assert owner.get(TASKS).status_code == 403
    assert owner.get(f"{TASKS}/{task.pk}").status_code == 403
