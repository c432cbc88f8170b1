"""A RabbitMQ of our own: on loopback, with a directory, a port and an epmd of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from obsrv.demo.stack import free_port

# Debian's own script in /usr/sbin changes the user; this one starts the server as it is.
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_SECONDS = 90
STOP_SECONDS = 30


def server() -> str | None:
    return str(SERVER) if SERVER.exists() else shutil.which("rabbitmq-server")


class Rabbit:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def __enter__(self) -> Self:
        epmd_port = free_port()
        self.base.mkdir()
        command = server()
        epmd = shutil.which("epmd")
        assert command
        assert epmd
        environment = os.environ | {
            "HOME": str(self.base),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"obsrv{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.base / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.base / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.base / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.base / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self._start([epmd, "-address", "127.0.0.1", "-port", str(epmd_port)], environment)
        self._start([command], environment)
        try:
            self._await_answer()
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
        for process in reversed(self._processes):
            # The server is a script and its beam: one group of its own.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        with (self.base / "output").open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._processes[-1].poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                return
        raise RuntimeError("RabbitMQ did not start:\n" + (self.base / "output").read_text()[-3000:])
