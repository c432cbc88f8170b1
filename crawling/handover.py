"""A batch of fetched pages goes to whoever asked for them, in one transaction.

The consumer of a purpose reads its pages first, outside any transaction, and answers
with a function that writes; that one runs inside, together with the end of the tasks
and the counters of their jobs. A page whose claim was lost meanwhile is left out.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import random
import re
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from crawling import jobs
from crawling.fetching import Failure, Page
from crawling.frontier import hold_websites
from crawling.models import CrawlError, CrawlTask
from crawling.states import Settlement, Status, lock_claimed, settle

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a consumer made of one page."""

    changes: int = 0
    failure: Failure | None = None


Accepted = set[uuid.UUID]
# Writes what was read of the accepted tasks' pages; a verdict for each of them.
Store = Callable[[Accepted], dict[uuid.UUID, Verdict]]
Consumer = Callable[[Sequence[Page]], Store]


def hand_over(pages: Sequence[Page]) -> int:
    """Write a batch; answers how many pages were accepted. A page that makes the batch
    fail is found by writing each alone, and fails alone."""
    try:
        return _write(pages)
    except (OperationalError, InterfaceError):
        # A lost deadlock or a database away: once more, then the leases run out.
        return _write(pages)
    except Exception:
        # Whatever one page did must not reach the others.
        if len(pages) == 1:
            logger.exception("the page of task %s cannot be stored", pages[0].claim.id)
            return _write([_spoiled(pages[0], traceback.format_exc())])
    return sum(hand_over([page]) for page in pages)


def _spoiled(page: Page, trace: str) -> Page:
    failure = Failure(
        CrawlTask.Category.INTERNAL, "the page could not be stored", transient=False, trace=trace
    )
    return Page(page.claim, page.fetched_at, failure, status=page.status, url=page.url)


def _write(pages: Sequence[Page]) -> int:
    stores = _read(pages)
    with transaction.atomic():
        hold_websites(page.claim.website_id for page in pages if page.claim.website_id)
        jobs.lock(page.claim.job_id for page in pages)
        accepted = lock_claimed([(page.claim.id, page.claim.fence) for page in pages])
        verdicts: dict[uuid.UUID, Verdict] = {}
        for store in stores:
            verdicts |= store(accepted)
        _settle([page for page in pages if page.claim.id in accepted], verdicts)
    return len(accepted)


def _read(pages: Sequence[Page]) -> list[Store]:
    by_purpose: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        if page.failure is None:
            by_purpose[page.claim.purpose].append(page)
    return [_consumer(purpose)(group) for purpose, group in sorted(by_purpose.items())]


def _consumer(purpose: str) -> Consumer:
    consumer: Consumer = import_string(settings.PAGE_CONSUMERS[purpose])
    return consumer


def _settle(pages: Sequence[Page], verdicts: dict[uuid.UUID, Verdict]) -> None:
    settlements, errors = [], []
    tallies: dict[uuid.UUID, jobs.Tally] = defaultdict(jobs.Tally)
    for page in pages:
        verdict = verdicts.get(page.claim.id, Verdict(failure=page.failure))
        settlement = _settlement(page, verdict.failure)
        settlements.append(settlement)
        tally = tallies[page.claim.job_id]
        tally.changes += verdict.changes
        tally.processed += settlement.completed_at is not None
        tally.errors += settlement.status == Status.FAILED
        tally.retries += settlement.status == Status.PENDING
        if verdict.failure:
            errors.append(_error(page, verdict.failure))
    settle(settlements)
    CrawlError.objects.bulk_create(errors)
    jobs.count(tallies)


def _settlement(page: Page, failure: Failure | None) -> Settlement:
    claim, now = page.claim, timezone.now()
    retry = failure is not None and failure.transient and claim.retry_count < claim.max_retries
    status = Status.PENDING if retry else Status.FAILED if failure else Status.COMPLETED
    return Settlement(
        id=claim.id,
        status=status,
        scheduled_at=now + backoff(claim.retry_count) if retry else None,
        retry_count=claim.retry_count + retry,
        error_category=failure.category if failure else "",
        error_message=failure.message if failure else "",
        http_status=page.status,
        response_time_ms=page.elapsed_ms,
        bytes=len(page.body),
        final_url=page.url[:2048],
        completed_at=None if retry else now,
        proxy_id=page.proxy_id,
    )


def backoff(retry_count: int) -> dt.timedelta:
    """1, 2, 4 … minutes, give or take a tenth."""
    seconds = 60 * 2**retry_count * random.uniform(0.9, 1.1)  # noqa: S311
    return dt.timedelta(seconds=seconds)


def _error(page: Page, failure: Failure) -> CrawlError:
    # The same trouble on many pages is one group: numbers and addresses do not count.
    shape = re.sub(r"https?://\S+|\d+", "#", failure.message)
    digest = hashlib.sha256(f"{page.claim.domain_id} {failure.category} {shape}".encode())
    return CrawlError(
        task_id=page.claim.id,
        domain_id=page.claim.domain_id,
        category=failure.category,
        message=failure.message[:2000],
        trace=failure.trace[-10_000:],
        fingerprint=digest.hexdigest(),
        occurred_at=page.fetched_at,
    )
