from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

# Before Django reads its settings: a throw-away cluster of our own, no developer's .env,
# and a database name of this run's own, so that runs beside each other do not meet.
os.environ.setdefault("OBSRV_TEST_RUN", str(os.getpid()))
os.environ["OBSRV_READ_ENV_FILE"] = "false"
os.environ["OBSRV_VAR_DIR"] = str(Path(__file__).resolve().parent.parent / "var" / "test")
os.environ["OBSRV_EMBEDDED_THROW_AWAY"] = "true"


def pytest_configure(config: pytest.Config) -> None:
    # The workers of a parallel run live shorter than the process that starts them.
    if not hasattr(config, "workerinput"):
        from obsrv import services

        if services.start():
            drop_databases_of_dead_runs()


def drop_databases_of_dead_runs() -> None:
    import psycopg
    from django.conf import settings

    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        found = connection.execute("SELECT datname FROM pg_database WHERE datname ~ '^test_obsrv_'")
        for (name,) in found.fetchall():
            run = name.split("_")[2]
            if run.isdigit() and not psutil.pid_exists(int(run)):
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
