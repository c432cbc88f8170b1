"""Celery doors of the crawler."""

from __future__ import annotations

import datetime as dt

from celery import shared_task
from django.utils import timezone

from common.wakeups import wake
from crawling import leases, ledger, page_retention, parsing, recurrence, retention
from crawling.frontier import CRAWL, PARSE
from crawling.slices import run_slice

KEEP = dt.timedelta(days=30)


@shared_task
def crawl_slice() -> int:
    written = run_slice()
    if leases.has_due_domain():
        wake(CRAWL)
    return written


@shared_task
def parse_slice() -> int:
    written = parsing.run_parse_slice()
    if parsing.has_due():
        wake(PARSE)
    return written


@shared_task
def sweep() -> None:
    """Beat: wake a worker where due work belongs to nobody."""
    if leases.has_due_domain():
        wake(CRAWL)
    if parsing.has_due():
        wake(PARSE)


@shared_task
def return_expired_leases() -> int:
    returned = leases.return_expired()
    if returned:
        wake(CRAWL)
        wake(PARSE)
    return returned


@shared_task
def queue_recurring() -> int:
    return recurrence.queue_due()


@shared_task
def purge() -> int:
    ledger.purge()
    return retention.purge(before=timezone.now() - KEEP)


@shared_task
def purge_pages(*, dry_run: bool = False) -> dict[str, int]:
    """Stored pages that nobody needs any more, and files that belong to no page."""
    return {
        "pages": page_retention.purge_pages(dry_run=dry_run),
        "validators": page_retention.purge_validators(dry_run=dry_run),
        "orphans": page_retention.sweep_orphans(dry_run=dry_run),
    }
