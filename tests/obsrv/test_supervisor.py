from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from obsrv import supervisor
from obsrv.supervisor import Child, Program, SupervisorError

SERVER = "import sys, http.server as h; h.HTTPServer(('127.0.0.1', int(sys.argv[1])), h.SimpleHTTPRequestHandler).serve_forever()"
# Leaves a grandchild in its group, as a worker with a pool does.
NESTED = "import subprocess, sys; subprocess.run(['sleep', '300'])"
CREW = """
import signal, sys
from pathlib import Path
from obsrv import supervisor
from obsrv.supervisor import Program, Supervisor
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, supervisor.interrupt)
port = int(sys.argv[2])
programs = [
    Program("nested", [sys.executable, "-c", sys.argv[4]]),
    Program("web", [sys.executable, "-c", sys.argv[3], str(port)]),
]
say = lambda line: print(line, flush=True)
try:
    with supervisor.only_one(Path(sys.argv[1])):
        crew = Supervisor(programs, var=Path(sys.argv[1]), say=say)
        crew.run(address=("127.0.0.1", port), ready=lambda: say("ready"))
except KeyboardInterrupt:
    say("stopped")
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def crew(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CREW, str(tmp_path), str(port), SERVER, NESTED]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    read_until(process, "ready")
    yield process
    family = descendants(process.pid) if process.poll() is None else []
    for each in family:
        each.kill()
    process.kill()
    process.communicate()


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    assert process.stdout
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if wanted in line:
            return "".join(said)
    raise AssertionError(f"{wanted!r} never came:\n{''.join(said)}")


def descendants(pid: int) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    return found


def are_gone(processes: list[psutil.Process], seconds: float) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return all(p.status() == psutil.STATUS_ZOMBIE for p in alive if p.is_running())


def wait_for(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_signal_stops_every_process(crew: subprocess.Popen[str], tmp_path: Path) -> None:
    family = descendants(crew.pid)
    assert len(family) == 3
    crew.terminate()
    assert crew.wait(10) == 0
    assert are_gone(family, 0)
    assert not (tmp_path / "up.json").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux only")
def test_kill_nine_of_the_supervisor_ends_its_children(crew: subprocess.Popen[str]) -> None:
    children = psutil.Process(crew.pid).children()
    grandchildren = [p for p in descendants(crew.pid) if p not in children]
    crew.kill()
    crew.wait()
    assert are_gone(children, 5)
    for each in grandchildren:
        each.kill()


def test_a_program_that_dies_is_started_again(crew: subprocess.Popen[str], port: int) -> None:
    web = next(p for p in descendants(crew.pid) if str(port) in p.cmdline())
    web.kill()
    read_until(crew, "web was ended by SIGKILL; again in 1 s")
    wait_for(lambda: supervisor.answers(("127.0.0.1", port)))


def test_a_second_supervisor_of_the_same_directory_is_refused(
    crew: subprocess.Popen[str], tmp_path: Path
) -> None:
    with (
        pytest.raises(SupervisorError, match=f"already \\(process {crew.pid}\\)"),
        supervisor.only_one(tmp_path),
    ):
        pass


def test_a_taken_port_is_said_with_a_way_out(port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(SupervisorError, match=f"OBSRV_PORT={port + 1}"):
            supervisor.require_free_port(("127.0.0.1", port))


def test_leftovers_of_a_killed_supervisor_are_ended(tmp_path: Path) -> None:
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    started = psutil.Process(left.pid).create_time()
    (tmp_path / "up.json").write_text(json.dumps([{"pid": left.pid, "started": started}]))
    supervisor.end_leftovers(tmp_path)
    assert left.wait(5) == -signal.SIGKILL


def test_a_stranger_with_a_remembered_pid_is_spared(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (tmp_path / "up.json").write_text(json.dumps([{"pid": stranger.pid, "started": 1.0}]))
    supervisor.end_leftovers(tmp_path)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_only_warnings_and_their_tracebacks_reach_the_terminal(tmp_path: Path) -> None:
    lines = [
        "2026-11-18T08:00:00Z [info     ] quiet",
        "2026-11-18T08:00:01Z [error    ] broken",
        "Traceback (most recent call last):",
        '{"level":"info","event":"quiet again"}',
        "no level, after a quiet line",
        '{"level": "warning","event":"careful"}',
        "INFO:     Started server process",
    ]
    said: list[str] = []
    program = Program("web", [sys.executable, "-c", f"print({chr(10).join(lines)!r})"])
    child = Child(program, tmp_path / "web.log", said.append)
    child.start()
    wait_for(child.has_ended)
    child.finish()
    wait_for(lambda: len(said) == 3)
    assert [line.removeprefix("web | ") for line in said] == [lines[1], lines[2], lines[5]]
    assert (tmp_path / "web.log").read_text().splitlines() == lines


class Up:
    """``manage.py up`` in a directory of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "up"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        watchdog = threading.Timer(80, self.process.terminate)
        watchdog.start()
        try:
            self.said = read_until(self.process, "Ctrl-C stops it")
        finally:
            watchdog.cancel()

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.family = descendants(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)


@pytest.mark.walk
@pytest.mark.timeout(180)
def test_up_serves_prints_secrets_once_and_leaves_nothing_behind(
    open_directory: Path, port: int
) -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "obsrv.settings",
        "OBSRV_VAR_DIR": str(open_directory / "var"),
        "OBSRV_PORT": str(port),
    }
    with Up(environment) as first:
        assert re.search(r"Password:\s+\S{20}", first.said)
        key = re.search(r"API key:\s+(obsrv_live_\S+)", first.said)
        assert key
        assert get(port, "/health") == {"status": "ok"}
        assert get(port, "/api/v1/me", key[1])
    assert_all_ended(first)

    with Up(environment) as second:
        assert "Password" not in second.said
        assert "obsrv_live_" not in second.said
        assert get(port, "/api/v1/me", key[1])
    assert_all_ended(second)


def assert_all_ended(up: Up) -> None:
    assert up.process.returncode == 0
    assert len(up.family) > 10
    assert are_gone(up.family, 0)


def get(port: int, path: str, key: str = "") -> object:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
