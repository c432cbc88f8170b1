"""Where the servers of one data directory keep data, sockets and logs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

DATABASE = "obsrv"
# sun_path holds 104 bytes on macOS and 108 on Linux.
SOCKET_PATH_LIMIT = 100
LOG_LIMIT_BYTES = 10_000_000


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

    def log(self, name: str) -> Path:
        return self.root / "log" / f"{name}.log"


def prepare_sockets(layout: Layout) -> None:
    runtime = layout.runtime
    if len(str(runtime / ".s.PGSQL.5432.lock")) > SOCKET_PATH_LIMIT:
        raise EmbeddedError(f"the path {runtime} is too long for a unix socket: set TMPDIR")
    with contextlib.suppress(FileExistsError):
        runtime.mkdir(mode=0o700)
    info = runtime.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise EmbeddedError(f"{runtime} belongs to someone else: remove it")


def tidy(layout: Layout) -> None:
    with contextlib.suppress(OSError):
        layout.runtime.rmdir()
    link = layout.root / "postgres"
    # Who removes a throw-away directory does not know of the one it points to.
    if layout.throw_away and link.is_symlink():
        shutil.rmtree(link.resolve(), ignore_errors=True)
        link.unlink()


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
