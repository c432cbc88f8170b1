"""The processes of one machine, kept running under one terminal or service.

Each program is a child in a session of its own, so that Ctrl-C reaches only the
supervisor, which then stops them in order. What they write goes to ``var/log``;
warnings and worse are shown too.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

import psutil

from obsrv.embedded import open_log

STOP_SECONDS = 7.0
KILL_SECONDS = 2.0
READY_SECONDS = 60.0
# Nobody is kept from a console that answers because a worker is slow to come.
HEARTBEAT_SECONDS = 15.0
# A program that ran this long had started well: its next failure is a first one.
STEADY_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 30.0
FAILURES_BEFORE_READY = 3

LEVEL = re.compile(
    r"\[(debug|info|warning|error|critical)\s*\]"
    r'|"level": ?"(debug|info|warning|error|critical)"'
    r"|^(DEBUG|INFO|WARNING|ERROR|CRITICAL):"
)
LOUD = {"warning", "error", "critical"}

# The kernel ends the child when the supervisor dies without a word (kill -9). The check
# after it covers a supervisor that died before the call; the setting survives exec.
DIE_WITH_PARENT = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]): sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class SupervisorError(RuntimeError):
    """The programs cannot be started; the message says what to do."""


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


class Child:
    """One program and its process, which may be a different one every time it fails."""

    def __init__(self, program: Program, log: Path, say: Callable[[str], None]) -> None:
        self.program = program
        self.log = log
        self.failures = 0
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._due_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._started_at = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603
            _tied_to_us(self.program.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.program.environment},
            start_new_session=True,
        )
        assert self._process.stdout
        pump = threading.Thread(target=self._pump, args=[self._process.stdout], daemon=True)
        pump.start()

    def watch(self) -> None:
        """Start again what has ended, after a pause that grows with every failure."""
        if self._process is None:
            if time.monotonic() >= self._due_at:
                self.start()
            return
        code = self._process.poll()
        if code is None:
            return
        self._sweep()
        if time.monotonic() - self._started_at > STEADY_SECONDS:
            self.failures = 0
        self.failures += 1
        pause = min(2.0 ** (self.failures - 1), LONGEST_PAUSE_SECONDS)
        self._due_at = time.monotonic() + pause
        self._process = None
        self._say(f"{self.program.name} {_ending(code)}; again in {pause:.0f} s, see {self.log}")

    def signal(self, how: signal.Signals) -> None:
        if self._process and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(how)

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def finish(self) -> None:
        """Nothing of it may be left, pool processes included."""
        self._sweep()
        if self._process:
            self._process.wait()

    def tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-15:])

    def _sweep(self) -> None:
        # A session leader's pid is also its group's id.
        if self._process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _pump(self, output: IO[bytes]) -> None:
        loud = False
        with output, open_log(self.log) as log:
            for raw in output:
                log.write(raw)
                log.flush()
                line = raw.decode(errors="replace").rstrip()
                loud = _is_loud(line, before=loud)
                if loud:
                    self._say(f"{self.program.name} | {line}")


class Supervisor:
    def __init__(self, programs: list[Program], *, var: Path, say: Callable[[str], None]) -> None:
        self.var = var
        self.say = say
        self.children = [Child(p, var / "log" / f"{p.name}.log", say) for p in programs]
        self._hurried = False

    def run(self, *, address: tuple[str, int], ready: Callable[[], None]) -> None:
        """Keep the programs running until a signal; ``ready`` is called once they answer."""
        end_leftovers(self.var)
        try:
            for child in self.children:
                child.start()
            self._remember()
            self._await_answer(address)
            self._await_heartbeats(address)
            ready()
            while True:
                self._watch()
        finally:
            self.stop()

    def stop(self) -> None:
        """In the order of the programs: who makes work first, who does it last."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._hurry)
        deadline = time.monotonic() + STOP_SECONDS
        for child in self.children:
            child.signal(signal.SIGTERM)
            if child is self.children[0]:
                self._await_end([child], time.monotonic() + 1)
        self._await_end(self.children, deadline)
        for child in self.children:
            # A worker gives up the task in hand; the lease brings it back.
            child.signal(signal.SIGQUIT)
        self._await_end(self.children, time.monotonic() + KILL_SECONDS)
        for child in self.children:
            child.finish()
        _state(self.var).unlink(missing_ok=True)

    def _watch(self) -> None:
        before = [child.pid for child in self.children]
        for child in self.children:
            child.watch()
        if before != [child.pid for child in self.children]:
            self._remember()
        time.sleep(0.2)

    def _await_answer(self, address: tuple[str, int]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not answers(address):
            self._watch()
            failing = [c for c in self.children if c.failures >= FAILURES_BEFORE_READY]
            if failing:
                child = failing[0]
                raise SupervisorError(f"{child.program.name} does not start:\n{child.tail()}")
            if time.monotonic() > deadline:
                raise SupervisorError(
                    f"no answer on port {address[1]} within {READY_SECONDS:.0f} s"
                )

    def _await_heartbeats(self, address: tuple[str, int]) -> None:
        deadline = time.monotonic() + HEARTBEAT_SECONDS
        while time.monotonic() < deadline and not answers(address, "/health/ready"):
            self._watch()

    def _await_end(self, children: list[Child], deadline: float) -> None:
        while not all(child.has_ended() for child in children):
            if self._hurried or time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def _hurry(self, _number: int, _frame: FrameType | None) -> None:
        self._hurried = True

    def _remember(self) -> None:
        found = [_identity(child.pid) for child in self.children if child.pid]
        _state(self.var).write_text(json.dumps([identity for identity in found if identity]))


def end_leftovers(var: Path) -> None:
    """End what a killed supervisor left behind where the kernel did not do so."""
    try:
        known: list[dict[str, Any]] = json.loads(_state(var).read_text())
    except (OSError, ValueError):
        return
    for left in known:
        # The start time tells it from a process that was given the same pid later.
        if _identity(left["pid"]) == left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(left["pid"], signal.SIGKILL)
    _state(var).unlink(missing_ok=True)


@contextlib.contextmanager
def only_one(var: Path) -> Iterator[None]:
    """One supervisor per data directory."""
    var.mkdir(parents=True, exist_ok=True)
    with (var / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise SupervisorError(
                f"Obsrv runs from this checkout already (process {lock.read().strip()}): "
                "stop it first, or use another checkout or OBSRV_VAR_DIR."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def require_free_port(address: tuple[str, int], remedy: str = "") -> None:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SupervisorError(
                f"cannot serve on {host}:{port}: {error.strerror}. "
                f"Another program uses it? {remedy or f'Try OBSRV_PORT={port + 1} bin/up'}"
            ) from error


def answers(address: tuple[str, int], path: str = "/health") -> bool:
    """Any answer that is no failure of the server will do: a redirect to https is one."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])  # noqa: S104
    connection = http.client.HTTPConnection(host, address[1], timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _tied_to_us(command: list[str]) -> list[str]:
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *command]


def _is_loud(line: str, *, before: bool) -> bool:
    """A line without a level, such as one of a traceback, goes with the line before."""
    level = LEVEL.search(line)
    if level is None:
        return before and bool(line)
    return next(name for name in level.groups() if name).lower() in LOUD


def _ending(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _state(var: Path) -> Path:
    return var / "up.json"


def _identity(pid: int) -> dict[str, Any] | None:
    try:
        return {"pid": pid, "started": psutil.Process(pid).create_time()}
    except psutil.Error:
        return None
