"""Starting, watching and recognising the processes of servers."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from obsrv.embedded.homes import Account
from obsrv.embedded.layout import EmbeddedError, open_log


def launch(
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


def run(command: list[str], *, cwd: Path, account: Account | None) -> None:
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
def explained(name: str) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise
    except OSError as error:
        raise EmbeddedError(f"{name} could not be started: {error}") from error


def poll(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def processes_in(directory: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and process.info["cwd"] == str(directory):
            found.append(process.pid)
    return found
