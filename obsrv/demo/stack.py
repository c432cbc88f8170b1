"""A whole Obsrv of its own: data directory, port and processes apart from any other."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parent.parent.parent
START_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 40
KEY = re.compile(r"API key:\s+(obsrv_live_\S+)")
PASSWORD = re.compile(r"Password:\s+(\S+)")
# The shop and the receiver stand on this machine, and may be asked as fast as can be.
LOOPBACK = {
    "EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8",
    "WEBHOOK_ALLOW_HTTP": "true",
    "CRAWL_DEFAULT_DELAY_SECONDS": "0",
    "SCHEDULE_MIN_SECONDS": "10",
}


class StackError(RuntimeError):
    """It did not start; the message ends with what it said."""


class Stack:
    """``bin/up`` in a process of its own; use as a context manager."""

    def __init__(self, var: Path, **environment: str) -> None:
        self.var = var
        self.port = free_port()
        self.environment = {
            **_without_settings(os.environ),
            **LOOPBACK,
            **environment,
            "OBSRV_READ_ENV_FILE": "false",
            "OBSRV_VAR_DIR": str(var),
            "OBSRV_PORT": str(self.port),
        }
        self.api_key = self.password = ""
        self._said: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-u", "manage.py", "up"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._await_greeting()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def manage(self, *command: str) -> str:
        """Run a management command in this stack; answers what it printed."""
        done = subprocess.run(  # noqa: S603
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self._said.extend(output)

    def _await_greeting(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not any("Ctrl-C stops it" in line for line in self._said):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StackError("Obsrv did not start:\n" + "".join(self._said)[-3000:])
            time.sleep(0.05)
        said = "".join(self._said)
        self.api_key = _first(KEY, said)
        self.password = _first(PASSWORD, said)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""


def _without_settings(environment: os._Environ[str]) -> dict[str, str]:
    """Nothing of the caller's own configuration may leak into the stack."""
    ours = (
        "OBSRV_",
        "CRAWL_",
        "WEBHOOK_",
        "EGRESS_",
        "SCHEDULE_",
        "DATABASE_",
        "REDIS_",
        "CELERY_",
    )
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(ours) and name not in ("SECRET_KEY", "DJANGO_SETTINGS_MODULE")
    }
