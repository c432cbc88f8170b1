from __future__ import annotations

import os
from pathlib import Path

# Before Django reads its settings: a throw-away cluster of our own, no developer's .env,
# and a database name of this run's own, so that runs beside each other do not meet.
os.environ.setdefault("OBSRV_TEST_RUN", str(os.getpid()))
os.environ["OBSRV_READ_ENV_FILE"] = "false"
os.environ["OBSRV_VAR_DIR"] = str(Path(__file__).resolve().parent.parent / "var" / "test")
os.environ["OBSRV_EMBEDDED_THROW_AWAY"] = "true"


def pytest_configure() -> None:
    from obsrv import services

    services.start()
