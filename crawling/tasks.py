"""Celery doors of the crawler."""

from __future__ import annotations

import datetime as dt

from celery import shared_task
from django.utils import timezone

from common.wakeups import wake
from crawling import leases, ledger, recurrence, retention
from crawling.frontier import CRAWL
from crawling.slices import run_slice

KEEP = dt.timedelta(days=30)


@shared_task
def crawl_slice() -> int:
    written = run_slice()
    if leases.has_due_domain():
        wake(CRAWL)
    return written


@shared_task
def sweep() -> None:
    """Beat: wake a worker where due work belongs to nobody."""
    if leases.has_due_domain():
        wake(CRAWL)


@shared_task
def return_expired_leases() -> int:
    returned = leases.return_expired()
    if returned:
        wake(CRAWL)
    return returned


@shared_task
def queue_recurring() -> int:
    return recurrence.queue_due()


@shared_task
def purge() -> int:
    ledger.purge()
    return retention.purge(before=timezone.now() - KEEP)
