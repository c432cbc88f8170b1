"""Queues are explicit, and someone listens to each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from celery import current_app
from celery.exceptions import QueueNotFound
from django.conf import settings

from obsrv import queues
from obsrv.management.commands import up

NAMES = {"crawl", "deliver", "default"}


def test_a_message_for_an_unknown_queue_is_refused_where_it_is_sent() -> None:
    with pytest.raises(QueueNotFound, match="nowhere"):
        current_app.send_task("crawling.tasks.crawl_slice", queue="nowhere")


def test_each_task_has_a_queue_that_exists_and_is_bound_to_its_own_name() -> None:
    assert {queue.name for queue in settings.CELERY_TASK_QUEUES} == NAMES
    for queue in settings.CELERY_TASK_QUEUES:
        assert (queue.exchange.name, queue.routing_key) == (queue.name, queue.name)
    assert {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()} <= NAMES


def test_the_embedded_start_and_the_image_listen_to_every_queue() -> None:
    commands = [program.command for program in up.programs()]
    listened = {name for c in commands if "-Q" in c for name in c[c.index("-Q") + 1].split(",")}
    assert listened == NAMES
    role = (Path(settings.BASE_DIR) / "bin" / "role").read_text()
    found = re.search(r"--queues \"\$\{1:-([a-z,]+)\}", role)
    assert found is not None
    assert set(found[1].split(",")) == NAMES


def test_queues_that_no_worker_names_are_unattended(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"crawl@host": [{"name": "crawl"}], "other@host": [{"name": "deliver"}]}
    monkeypatch.setattr("celery.app.control.Inspect.active_queues", lambda self: answers)
    assert queues.unattended() == ["default"]


def test_without_workers_every_queue_is_unattended() -> None:
    assert set(queues.unattended()) == NAMES


def test_a_broker_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    with pytest.raises(queues.BrokerAway):
        queues.unattended()
