from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from obsrv.embedded import EmbeddedError, Layout, Postgres, Servers, Valkey

HOLDER = """
import sys
from pathlib import Path
from obsrv.embedded import Layout, Servers
Servers(Layout(Path(sys.argv[1]), throw_away=True)).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def layout(open_directory: Path) -> Iterator[Layout]:
    layout = Layout(open_directory / "a place", throw_away=True)
    yield layout
    for server in (Postgres(layout), Valkey(layout)):
        server.stop()
    shutil.rmtree(layout.runtime, ignore_errors=True)


@pytest.fixture
def hold(layout: Layout) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Another process that uses the servers until its standard input ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        holder = subprocess.Popen(
            [sys.executable, "-X", "dev", "-c", HOLDER, str(layout.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(holder)
        return holder

    yield start
    for holder in started:
        holder.kill()
        holder.communicate()


def wait_ready(holder: subprocess.Popen[bytes]) -> None:
    assert holder.stdout
    assert holder.stdout.readline() == b"ready\n"


def pids(layout: Layout) -> tuple[int | None, int | None]:
    return Postgres(layout).running_pid(), Valkey(layout).running_pid()


def connect(layout: Layout) -> psycopg.Connection:
    return psycopg.connect(layout.database_url, autocommit=True)


def wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_both_servers_start_answer_and_stop(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    postgres, valkey = pids(layout)
    assert Postgres(layout).answers()
    assert Valkey(layout).answers()
    servers.stop()
    assert pids(layout) == (None, None)
    for pid in (postgres, valkey):
        assert pid
        wait_gone(pid)


@pytest.mark.parametrize("wanted", ["postgres", "valkey"])
def test_only_the_needed_server_starts(layout: Layout, wanted: str) -> None:
    servers = Servers(layout, postgres=wanted == "postgres", valkey=wanted == "valkey")
    servers.start()
    postgres, valkey = pids(layout)
    servers.stop()
    assert [bool(postgres), bool(valkey)] == [wanted == "postgres", wanted == "valkey"]


def test_the_last_user_stops_the_servers(
    layout: Layout, hold: Callable[[], subprocess.Popen[bytes]]
) -> None:
    servers = Servers(layout)
    servers.start()
    before = pids(layout)
    holder = hold()
    wait_ready(holder)
    servers.stop()
    assert pids(layout) == before
    _, errors = holder.communicate()
    assert pids(layout) == (None, None)
    assert errors == b"", "no warning of a process that still runs"


def test_many_users_starting_at_once_share_one_server(
    layout: Layout, hold: Callable[[], subprocess.Popen[bytes]]
) -> None:
    holders = [hold() for _ in range(4)]
    for holder in holders:
        wait_ready(holder)
    first = pids(layout)
    assert all(first)
    for holder in holders:
        assert pids(layout) == first
        holder.communicate()
    assert pids(layout) == (None, None)


def test_servers_of_a_killed_user_are_taken_over(
    layout: Layout, hold: Callable[[], subprocess.Popen[bytes]]
) -> None:
    holder = hold()
    wait_ready(holder)
    before = pids(layout)
    holder.kill()
    holder.wait()
    servers = Servers(layout)
    servers.start()
    assert pids(layout) == before
    servers.stop()
    assert pids(layout) == (None, None)


def test_data_survives_kill_nine_of_both_servers(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    with connect(layout) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    for pid in pids(layout):
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)
    servers.stop()
    again = Servers(layout)
    again.start()
    with connect(layout) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    assert Valkey(layout).answers()
    again.stop()


def test_a_stale_pid_of_a_stranger_is_neither_obeyed_nor_killed(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    servers.stop()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        Postgres(layout).pid_file.write_text(f"{stranger.pid}\n/elsewhere\n")
        Valkey(layout).pid_file.write_text(str(stranger.pid))
        servers.start()
        assert stranger.pid not in pids(layout)
        servers.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_servers_whose_sockets_were_swept_away_are_replaced(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    before = pids(layout)
    shutil.rmtree(layout.runtime)
    again = Servers(layout)
    again.start()
    after = pids(layout)
    assert all(after)
    assert not set(after) & set(before)
    with connect(layout) as connection:
        connection.execute("SELECT 1")
    servers.stop()
    again.stop()


def test_a_forked_child_does_not_stop_the_servers(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    before = pids(layout)
    child = os.fork()
    if child == 0:
        servers.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert pids(layout) == before
    servers.stop()


def test_a_half_made_cluster_is_not_used(layout: Layout) -> None:
    layout.root.mkdir()
    servers = Servers(layout)
    servers.start()
    servers.stop()
    home = (layout.root / "postgres").resolve()
    (home / "data").rename(home / "new-1")
    servers.start()
    assert not (home / "new-1").exists()
    with connect(layout) as connection:
        connection.execute("SELECT 1")
    servers.stop()


def test_a_database_that_refuses_says_why(layout: Layout) -> None:
    servers = Servers(layout)
    servers.start()
    servers.stop()
    (Postgres(layout).data / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedError, match="incompatible"):
        servers.start()
    assert pids(layout) == (None, None)


def test_other_users_cannot_reach_the_sockets(layout: Layout) -> None:
    servers = Servers(layout, valkey=False)
    servers.start()
    assert layout.runtime.stat().st_mode & 0o007 == 0
    assert layout.postgres_socket.stat().st_mode & 0o077 == 0
    servers.stop()


def test_a_missing_wheel_is_said(monkeypatch: pytest.MonkeyPatch, layout: Layout) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EmbeddedError, match="set REDIS_URL"):
        Servers(layout, postgres=False).start()


def test_two_checkouts_have_two_socket_directories(tmp_path: Path) -> None:
    assert Layout(tmp_path / "a").runtime != Layout(tmp_path / "b").runtime


only_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root's directories can be closed to its server"
)


@only_root
def test_a_closed_directory_gets_its_cluster_elsewhere_until_it_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither the checkout nor its environment can be read: the binaries are copied too.
    monkeypatch.setattr("obsrv.embedded.homes.open_to_all", lambda _path: False)
    layout = Layout(tmp_path, throw_away=True)
    servers = Servers(layout, valkey=False)
    servers.start()
    elsewhere = (tmp_path / "postgres").resolve()
    assert not elsewhere.is_relative_to(tmp_path)
    assert elsewhere.stat().st_mode & 0o077 == 0
    assert list(elsewhere.glob("wheel-*"))
    with connect(layout) as connection:
        connection.execute("SELECT 1")
    servers.stop()
    assert not elsewhere.exists()
    assert not layout.runtime.exists()


@only_root
def test_a_cluster_that_vanished_is_not_silently_replaced(layout: Layout) -> None:
    layout.root.mkdir()
    (layout.root / "postgres").symlink_to("/nonexistent/cluster")
    with pytest.raises(EmbeddedError, match="is gone"):
        Servers(layout).start()
