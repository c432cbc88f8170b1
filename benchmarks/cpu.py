"""CPU seconds, which a busy machine does not spoil: of a process tree, of the database."""

from __future__ import annotations

import contextlib
import time

import psutil
from django.db import connection


def of_tree(pid: int) -> float:
    """User and system time of a process, its children and those that have ended."""
    process = psutil.Process(pid)
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def of_database() -> float:
    """Of all processes of the server, which has to be on this machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    return of_tree(psutil.Process(backend).ppid())


def of_fixed_loop() -> float:
    """Even CPU time grows where many share the caches: what the same work takes just now."""
    started, total = time.process_time(), 0
    for number in range(3_000_000):
        total += number
    return time.process_time() - started
