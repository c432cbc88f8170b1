from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import redis

pytest_plugins = ["tests.api_fixtures", "tests.shop.fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    # The workers of a parallel run live shorter than the process that starts them.
    if not hasattr(config, "workerinput"):
        from obsrv import services

        if services.start():
            drop_databases_of_dead_runs()


@pytest.fixture(scope="session", autouse=True)
def pages_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stored pages of this run alone."""
    from django.conf import settings

    settings.STORAGES["pages"]["OPTIONS"]["location"] = tmp_path_factory.mktemp("pages")


@pytest.fixture(autouse=True)
def every_event_fits_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What any test makes the product say has the shape that receivers were promised."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    from notifications import events
    from notifications.catalogue import TYPES

    make = events._event

    def make_and_check(*given: Any) -> Any:
        event = make(*given)
        Draft202012Validator(TYPES[event.type].schema).validate(json.loads(event.body))
        return event

    monkeypatch.setattr(events, "_event", make_and_check)


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """Heartbeats under names of this test's own: others that run now share the server."""
    from django.conf import settings

    from obsrv import tasks

    monkeypatch.setattr(tasks, "HEARTBEAT", f"test:{uuid.uuid4()}:{{}}")
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        yield server
        server.delete(*(tasks.HEARTBEAT.format(name) for name in ("beat", "worker")))


def drop_databases_of_dead_runs() -> None:
    import psycopg
    from django.conf import settings

    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        found = connection.execute("SELECT datname FROM pg_database WHERE datname ~ '^test_obsrv_'")
        for (name,) in found.fetchall():
            run = name.split("_")[2]
            if run.isdigit() and not psutil.pid_exists(int(run)):
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Threads of a live server may still hold connections when the last test is over, and
    a database that is in use cannot be dropped."""
    yield
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
