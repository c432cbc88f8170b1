from __future__ import annotations

import time

import pytest
import redis
from django.db import connection

from obsrv import tasks


def seen(server: redis.Redis) -> dict[str, bool]:
    found = {}
    for name in ("beat", "worker"):
        told = server.get(tasks.HEARTBEAT.format(name))
        found[name] = isinstance(told, bytes) and abs(int(told) - time.time()) < 10
    return found


def test_a_heartbeat_sent_by_beat_speaks_for_both(beats: redis.Redis) -> None:
    tasks.heartbeat.apply(headers={"periodic_task_name": "obsrv: heartbeat"})
    assert seen(beats) == {"beat": True, "worker": True}


def test_a_heartbeat_sent_by_hand_speaks_for_the_worker(beats: redis.Redis) -> None:
    tasks.heartbeat.apply()
    assert seen(beats) == {"beat": False, "worker": True}


@pytest.mark.django_db
def test_one_failing_purge_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "PURGES", ("nowhere.at_all", f"{__name__}.note"))
    noted.clear()
    tasks.purge()
    assert noted == ["called"]


@pytest.mark.django_db(transaction=True)
def test_a_purge_whose_connection_breaks_does_not_take_the_others_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "PURGES", (f"{__name__}.break_connection", f"{__name__}.ask"))
    noted.clear()
    tasks.purge()
    assert noted == ["answered"]


noted: list[str] = []


def note() -> None:
    noted.append("called")


def break_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def ask() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    noted.append("answered")


@pytest.mark.django_db
def test_every_purge_exists_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(tasks.log, "exception", lambda *_a, **details: failures.append(details))
    tasks.purge()
    assert failures == []
