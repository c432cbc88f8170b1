"""Every try of one task: the requests of the ledger, and the errors they ended in."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

from crawling.models import CrawlError, CrawlTask, LedgerEntry

MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    started_at: dt.datetime
    http_status: int | None = None
    response_ms: int | None = None
    bytes: int | None = None
    not_modified: bool = False
    proxy_id: uuid.UUID | None = None
    error_category: str = ""
    error_message: str = ""
    fingerprint: str = ""


def attempts_of(task: CrawlTask) -> list[Attempt]:
    """The newest first. An error without a request (a rule forbade it, a worker died) is
    a try of its own."""
    requests = LedgerEntry.objects.filter(task_id=task.pk).order_by("-started_at")[:MOST]
    errors = list(CrawlError.objects.filter(task=task).order_by("-occurred_at")[:MOST])
    tries = [_of_request(entry, _error_of(entry, errors)) for entry in requests]
    tries += [_of_error(error) for error in errors]
    return sorted(tries, key=lambda attempt: attempt.started_at, reverse=True)


def _error_of(entry: LedgerEntry, errors: list[CrawlError]) -> CrawlError | None:
    """The error that the request ended in: the first of its kind since it began, taken."""
    if not entry.error_category:
        return None
    after = [
        error
        for error in errors
        if error.category == entry.error_category and error.occurred_at >= entry.started_at
    ]
    if not after:
        return None
    errors.remove(after[-1])
    return after[-1]


def _of_request(entry: LedgerEntry, error: CrawlError | None) -> Attempt:
    return Attempt(
        started_at=entry.started_at,
        http_status=entry.http_status,
        response_ms=entry.response_ms,
        bytes=entry.bytes,
        not_modified=entry.not_modified,
        proxy_id=entry.proxy_id,
        error_category=entry.error_category,
        error_message=error.message if error else "",
        fingerprint=error.fingerprint if error else "",
    )


def _of_error(error: CrawlError) -> Attempt:
    return Attempt(
        started_at=error.occurred_at,
        error_category=error.category,
        error_message=error.message,
        fingerprint=error.fingerprint,
    )
