from __future__ import annotations

import psutil
import pytest

pytest_plugins = ["tests.shop.fixtures"]


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
