from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis
from django.conf import settings

from obsrv import tasks


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        server.delete("obsrv:heartbeat:beat", "obsrv:heartbeat:worker")
        yield server
        server.delete("obsrv:heartbeat:beat", "obsrv:heartbeat:worker")


def beats(server: redis.Redis) -> dict[str, bool]:
    found = {}
    for name in ("beat", "worker"):
        seen = server.get(f"obsrv:heartbeat:{name}")
        found[name] = isinstance(seen, bytes) and abs(int(seen) - time.time()) < 10
    return found


@pytest.mark.xdist_group("heartbeat")
def test_a_heartbeat_sent_by_beat_speaks_for_both(server: redis.Redis) -> None:
    tasks.heartbeat.apply(headers={"periodic_task_name": "obsrv: heartbeat"})
    assert beats(server) == {"beat": True, "worker": True}


@pytest.mark.xdist_group("heartbeat")
def test_a_heartbeat_sent_by_hand_speaks_for_the_worker(server: redis.Redis) -> None:
    tasks.heartbeat.apply()
    assert beats(server) == {"beat": False, "worker": True}


def test_one_failing_purge_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "PURGES", ("nowhere.at_all", f"{__name__}.note"))
    noted.clear()
    tasks.purge()
    assert noted == ["called"]


noted: list[str] = []


def note() -> None:
    noted.append("called")


@pytest.mark.django_db
def test_every_purge_exists_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(tasks.log, "exception", lambda *_a, **details: failures.append(details))
    tasks.purge()
    assert failures == []
