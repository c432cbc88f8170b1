"""One server process each: PostgreSQL and Valkey."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import ClassVar

import psutil

from obsrv.embedded.homes import (
    Account,
    admit,
    postgres_home,
    readable_binaries,
    server_account,
    valkey_binary,
)
from obsrv.embedded.layout import DATABASE, EmbeddedError, Layout
from obsrv.embedded.processes import explained, launch, poll, processes_in, read_pid, run

# Seconds a server may need to answer: crash recovery after kill -9 is included.
START_TIMEOUT_SECONDS = 60
# A throw-away database may lose its data on power failure; a real one may not.
DURABLE = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "wal_compression": "on",
    "unix_socket_permissions": "0700",
}
THROW_AWAY = {**DURABLE, "fsync": "off", "full_page_writes": "off"}


class Server(ABC):
    """One server process; its working directory is its data directory, which tells it
    from a process that was given the same pid later."""

    name: ClassVar[str]
    # What ends it, and for how many seconds to believe that it will.
    endings: ClassVar[tuple[tuple[signal.Signals, float], ...]]

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.log = layout.log(self.name)

    @property
    @abstractmethod
    def data(self) -> Path: ...

    @property
    @abstractmethod
    def pid_file(self) -> Path: ...

    @property
    @abstractmethod
    def socket(self) -> Path: ...

    @abstractmethod
    def answers(self) -> bool: ...

    @abstractmethod
    def launch(self) -> subprocess.Popen[bytes]:
        """Make the data directory ready and start the process."""

    def ensure_running(self) -> None:
        if self.answers() or self._comes_back():
            return
        self.stop()
        with explained(self.name):
            process = self.launch()
        self._wait(process)
        # It outlives this process on purpose; without a result Popen would warn of it.
        process.returncode = 0

    def stop(self) -> None:
        pid = self.running_pid()
        for how, patience in self.endings:
            if pid is None or not self._is_ours(pid):
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
            poll(partial(self._is_gone, pid), patience)

    def running_pid(self) -> int | None:
        pid = read_pid(self.pid_file)
        return pid if pid and self._is_ours(pid) else None

    def _is_ours(self, pid: int) -> bool:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            process = psutil.Process(pid)
            alive = process.status() != psutil.STATUS_ZOMBIE
            return alive and Path(process.cwd()) == self.data.resolve()
        except psutil.Error:
            return False

    def _is_gone(self, pid: int) -> bool:
        return not self._is_ours(pid)

    def _comes_back(self) -> bool:
        """Wait for one that is in crash recovery; without its socket it is lost to us."""

        def settled() -> bool:
            return self.answers() or not self.socket.exists() or self.running_pid() is None

        return poll(settled, START_TIMEOUT_SECONDS) and self.answers()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        poll(lambda: self.answers() or process.poll() is not None, START_TIMEOUT_SECONDS)
        if process.poll() is not None or not self.answers():
            tail = self.log.read_text(errors="replace")[-2000:]
            raise EmbeddedError(f"{self.name} did not start; {self.log} ends with:\n{tail}")


class Postgres(Server):
    name = "postgres"
    # Fast, immediate, dead.
    endings = ((signal.SIGINT, 30), (signal.SIGQUIT, 5), (signal.SIGKILL, 5))

    @property
    def data(self) -> Path:
        return self.layout.root / "postgres" / "data"

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    @property
    def socket(self) -> Path:
        return self.layout.postgres_socket

    def answers(self) -> bool:
        from psycopg import pq

        target = f"host={self.layout.runtime} user=postgres dbname=postgres connect_timeout=2"
        return pq.PGconn.ping(target.encode()) == pq.Ping.OK

    def ensure_running(self) -> None:
        super().ensure_running()
        self._ensure_database()

    def launch(self) -> subprocess.Popen[bytes]:
        account = server_account(self.data)
        home = postgres_home(self.layout, account)
        binaries = readable_binaries(home, account)
        if not self.data.exists():
            self._initialise(binaries, account)
        self._clear_stale_lock()
        admit(self.layout.runtime, account)
        command = [str(binaries / "postgres"), "-D", str(home / "data")]
        command += ["-h", "", "-k", str(self.layout.runtime)]
        for name, value in (THROW_AWAY if self.layout.throw_away else DURABLE).items():
            command += ["-c", f"{name}={value}"]
        return launch(command, self.log, cwd=home / "data", account=account)

    def _initialise(self, binaries: Path, account: Account | None) -> None:
        """Into a name of its own first: a killed initdb must not look like a cluster."""
        home = self.data.parent.resolve()
        for leftover in home.glob("new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        fresh = home / f"new-{os.getpid()}"
        command = [str(binaries / "initdb"), "-D", str(fresh), "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C"]
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--no-sync"] if self.layout.throw_away else []
        run(command, cwd=home, account=account)
        fresh.rename(home / "data")

    def _clear_stale_lock(self) -> None:
        """A pid of a dead server may have gone to another process since. Its backends
        need a moment to see that it died, and hold its shared memory until then."""
        if not self.pid_file.exists():
            return
        poll(lambda: not processes_in(self.data.resolve()), START_TIMEOUT_SECONDS)
        self.pid_file.unlink(missing_ok=True)

    def _ensure_database(self) -> None:
        import psycopg

        target = f"host={self.layout.runtime} user=postgres dbname=postgres"
        with psycopg.connect(target, autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())


class Valkey(Server):
    name = "valkey"
    endings = ((signal.SIGTERM, 15), (signal.SIGKILL, 5))

    @property
    def data(self) -> Path:
        return self.layout.root / "valkey"

    @property
    def pid_file(self) -> Path:
        return self.data / "valkey.pid"

    @property
    def socket(self) -> Path:
        return self.layout.valkey_socket

    def answers(self) -> bool:
        """While it loads its data it accepts connections but answers -LOADING."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            try:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(16).startswith(b"+PONG")
            except OSError:
                return False

    def launch(self) -> subprocess.Popen[bytes]:
        self.data.mkdir(exist_ok=True)
        self.socket.unlink(missing_ok=True)
        command = [str(valkey_binary()), "--port", "0"]
        command += ["--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        command += ["--dir", str(self.data), "--pidfile", str(self.pid_file)]
        # The broker must never lose a queued message to memory pressure.
        command += ["--maxmemory-policy", "noeviction"]
        durability = ["--save", "", "--appendonly", "no"]
        command += durability if self.layout.throw_away else ["--appendonly", "yes"]
        process = launch(command, self.log, cwd=self.data)
        self.pid_file.write_text(str(process.pid))
        return process
