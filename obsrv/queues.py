"""The queues of Celery: which there are, and whether anybody listens."""

from __future__ import annotations

import time

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

PATIENCE_SECONDS = 1.0
# Asking takes a second: probes that come often share an answer.
KEPT_SECONDS = 10
_lately: dict[str, tuple[float, dict[str, list[str]]]] = {}


class BrokerAway(Exception):
    """The broker does not answer."""


def attended() -> dict[str, list[str]]:
    """The workers of each queue that has any."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
            inspect = current_app.control.inspect(
                timeout=PATIENCE_SECONDS, connection=connection, limit=None
            )
            replies = inspect.active_queues() or {}
    except (OperationalError, OSError) as error:
        raise BrokerAway(str(error)) from error
    found: dict[str, list[str]] = {}
    for worker, listened in replies.items():
        for queue in listened:
            found.setdefault(queue["name"], []).append(worker)
    return found


def attended_lately() -> dict[str, list[str]]:
    asked_at, found = _lately.get("", (0.0, {}))
    if not asked_at or time.monotonic() - asked_at > KEPT_SECONDS:
        found = attended()
        _lately[""] = time.monotonic(), found
    return found


def unattended() -> list[str]:
    """Queues that no worker takes messages from."""
    return _missing(attended())


def unattended_lately() -> list[str]:
    return _missing(attended_lately())


def _missing(found: dict[str, list[str]]) -> list[str]:
    return [queue.name for queue in settings.CELERY_TASK_QUEUES if queue.name not in found]


def forget() -> None:
    _lately.clear()
