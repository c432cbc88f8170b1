"""Wake-ups: a message that says "there is work". The work itself is rows, so a message
that is lost, late or doubled changes nothing, and a broker that is away is only a delay."""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

# A wake-up nobody took by then is stale: the next sweep sends a fresh one.
EXPIRES_SECONDS = 15


def wake(task: str) -> None:
    try:
        current_app.send_task(task, expires=EXPIRES_SECONDS, retry=False, ignore_result=True)
    except (OperationalError, OSError):
        logger.warning("wake-up for %s not sent: the broker is away, the sweep will do", task)


def wake_on_commit(task: str) -> None:
    transaction.on_commit(lambda: wake(task), robust=True)
