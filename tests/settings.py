"""The settings of a test run: a throw-away cluster of our own, no developer's .env, and a
database name of this run's own, so that runs beside each other do not meet."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OBSRV_TEST_RUN", str(os.getpid()))
os.environ["OBSRV_READ_ENV_FILE"] = "false"
os.environ["OBSRV_VAR_DIR"] = str(Path(__file__).resolve().parent.parent / "var" / "test")
os.environ["OBSRV_EMBEDDED_THROW_AWAY"] = "true"

from obsrv.settings import *  # noqa: F403
