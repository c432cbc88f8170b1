from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client as Browser

from common import partitions
from monitoring import history
from obsrv import health, queues, tasks
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_answer_of_another_test() -> Iterator[None]:
    queues.forget()
    yield
    queues.forget()


@pytest.fixture
def beating(beats: redis.Redis) -> Iterator[redis.Redis]:
    for name in ("beat", "worker"):
        beats.set(tasks.HEARTBEAT.format(name), time.time())
    history.make_months()
    with patch.object(queues, "attended", return_value=attended_except()):
        yield beats


def attended_except(*names: str) -> dict[str, list[str]]:
    every = [queue.name for queue in settings.CELERY_TASK_QUEUES]
    return {name: ["a worker"] for name in every if name not in names}


def reasons(browser: Browser) -> dict[str, str]:
    answer = browser.get("/health/ready")
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    return {row["attr"]: row["detail"] for row in answer.json()["errors"]}


def test_live_asks_nobody(client: Browser, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert client.get("/health").json() == {"status": "ok"}


def test_ready_when_everything_is_there(client: Browser, beating: Any) -> None:
    answer = client.get("/health/ready")
    assert answer.status_code == 200
    assert set(answer.json()["checks"]) == set(health.CHECKS)


def test_a_worker_that_fell_silent_is_named(client: Browser, beating: Any) -> None:
    beating.set(tasks.HEARTBEAT.format("worker"), time.time() - 46)
    beating.delete(tasks.HEARTBEAT.format("beat"))
    assert set(reasons(client)) == {"worker", "beat"}


def test_not_being_ready_is_told_without_alarm(
    client: Browser, beating: Any, caplog: pytest.LogCaptureFixture
) -> None:
    health.forget_heartbeats()
    with caplog.at_level("INFO"):
        assert "not running" in reasons(client)["beat"]
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_a_missing_partition_is_named(client: Browser, beating: Any) -> None:
    with patch.object(partitions, "has_month", return_value=False):
        assert "no partition" in reasons(client)["partitions"]


def test_a_database_that_is_away_is_named(client: Browser, beating: Any) -> None:
    with patch.object(connection, "cursor", side_effect=OperationalError("gone")):
        assert {"database", "migrations", "partitions"} == set(reasons(client))


def test_a_redis_that_is_away_is_named(client: Browser, beating: Any, settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    assert {"redis", "beat", "worker"} == set(reasons(client))


def test_the_root_leads_to_the_console(client: Browser) -> None:
    assert client.get("/")["Location"] == "/admin/"


def test_a_queue_nobody_listens_to_is_named(client: Browser, beating: Any) -> None:
    with patch.object(queues, "attended", return_value=attended_except("crawl")):
        assert reasons(client) == {"queues": "no worker takes messages of crawl"}


def test_a_broker_that_is_away_is_named(client: Browser, beating: Any) -> None:
    with patch.object(queues, "attended", side_effect=queues.BrokerAway):
        assert reasons(client) == {"queues": "the broker does not answer"}
