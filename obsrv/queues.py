"""The queues of Celery: which there are, and whether anybody listens."""

from __future__ import annotations

import time

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

PATIENCE_SECONDS = 1.0
# Asking takes a second: probes that come often share an answer.
KEPT_SECONDS = 10
_lately: dict[str, tuple[float, list[str]]] = {}


class BrokerAway(Exception):
    """The broker does not answer."""


def unattended() -> list[str]:
    """Queues that no worker takes messages from."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
            inspect = current_app.control.inspect(
                timeout=PATIENCE_SECONDS, connection=connection, limit=None
            )
            replies = inspect.active_queues() or {}
    except (OperationalError, OSError) as error:
        raise BrokerAway(str(error)) from error
    attended = {queue["name"] for queues in replies.values() for queue in queues}
    return [queue.name for queue in settings.CELERY_TASK_QUEUES if queue.name not in attended]


def unattended_lately() -> list[str]:
    asked_at, missing = _lately.get("", (0.0, []))
    if not asked_at or time.monotonic() - asked_at > KEPT_SECONDS:
        missing = unattended()
        _lately[""] = time.monotonic(), missing
    return missing


def forget() -> None:
    _lately.clear()
