"""A batch of fetched pages goes to whoever asked for them, in one transaction.

The consumer of a purpose reads its pages first, outside any transaction, and answers
with a function that writes; that one runs inside, together with the end of the tasks,
the counters of their jobs and the rows of the stored pages. A page whose claim was lost
meanwhile is left out.

Pages that did not change (``page.not_modified``) are handed over too: the check counts.
A consumer that already knows their content need not read it; others call ``content()``.

Failed pages go to ``settings.FAILURE_CONSUMERS``, where their purpose has one: it may make
something of the failure, also a verdict that overrules it.
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
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from crawling import jobs, validators
from crawling import pages as page_store
from crawling.fetching import Failure, Page
from crawling.frontier import hold_websites
from crawling.leases import Claim
from crawling.models import CrawlError, CrawlTask
from crawling.pages import Content, PageLost, Storing
from crawling.states import Settlement, Status, lock_claimed, settle
from crawling.validators import Validator

logger = logging.getLogger(__name__)

LOST = Failure(CrawlTask.Category.INTERNAL, "the stored page is lost", transient=True)
LOST_FOR_EVER = Failure(
    CrawlTask.Category.INTERNAL,
    "the page is not stored any more: restart the task from fetch",
    transient=False,
)


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
    pages = [page.identified() for page in pages]
    try:
        return _write(pages)
    except (OperationalError, InterfaceError):
        # A lost deadlock or a database away: once more, then the leases run out.
        return _write(pages)
    except PageLost:
        if len(pages) == 1:
            return _write([_lost(pages[0])])
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
    return _failed(page, failure)


def _lost(page: Page) -> Page:
    """It did not change, and what it was before is gone: the next try brings it whole."""
    logger.error("the stored page %s of task %s is lost", page.content_hash, page.claim.id)
    page_store.forget(page.content_hash)
    return _failed(page, LOST_FOR_EVER if page.reparsed else LOST)


def _failed(page: Page, failure: Failure) -> Page:
    return replace(page, failure=failure, body=b"", packed=b"", content_hash="", not_modified=False)


def _write(pages: Sequence[Page]) -> int:
    with page_store.guard():
        storing = Storing(_content(page) for page in pages if page.content_hash)
        return _write_batch(pages, _read(pages), storing)


def _content(page: Page) -> Content:
    return Content(page.content_hash, page.body, page.headers.get("Content-Type", ""), page.packed)


def _write_batch(pages: Sequence[Page], stores: Sequence[Store], storing: Storing) -> int:
    with transaction.atomic():
        hold_websites(page.claim.website_id for page in pages if page.claim.website_id)
        jobs.lock(page.claim.job_id for page in pages)
        accepted = lock_claimed(page.claim for page in pages)
        verdicts: dict[uuid.UUID, Verdict] = {}
        for store in stores:
            verdicts |= store(accepted)
        taken = [page for page in pages if page.claim.id in accepted]
        _settle(taken, verdicts, storing.record())
        _remember(taken, verdicts)
    return len(accepted)


def _read(pages: Sequence[Page]) -> list[Store]:
    by_consumer: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        if name := _consumer_of(page):
            by_consumer[name].append(page)
    return [_consumer(name)(group) for name, group in sorted(by_consumer.items())]


def _consumer_of(page: Page) -> str:
    if page.failure is None:
        return str(settings.PAGE_CONSUMERS[page.claim.purpose])
    return str(settings.FAILURE_CONSUMERS.get(page.claim.purpose, ""))


def _consumer(name: str) -> Consumer:
    consumer: Consumer = import_string(name)
    return consumer


def is_asked_again(claim: Claim, failure: Failure | None) -> bool:
    """A failed page that gets another try: nothing is settled yet."""
    return failure is not None and failure.transient and claim.retry_count < claim.max_retries


def _remember(pages: Sequence[Page], verdicts: dict[uuid.UUID, Verdict]) -> None:
    """Validators are for pages that could be read; any other answer takes them back."""
    read: dict[str, Validator] = {}
    unread: list[str] = []
    for page in pages:
        if page.reparsed or page.status is None or page.claim.options.personal:
            continue
        verdict = verdicts.get(page.claim.id)
        if page.failure is None and (verdict is None or verdict.failure is None):
            # One that says the same is not written again: it is renewed by the whole page
            # that is fetched once its retention is over.
            if (validator := page.validator) != page.claim.known:
                read[page.claim.url_hash] = validator
        elif page.claim.known is not None:
            unread.append(page.claim.url_hash)
    validators.keep(read)
    validators.forget(unread)


def _settle(
    pages: Sequence[Page],
    verdicts: dict[uuid.UUID, Verdict],
    stored: dict[str, uuid.UUID],
) -> None:
    settlements, errors, now = [], [], timezone.now()
    tallies: dict[uuid.UUID, jobs.Tally] = defaultdict(jobs.Tally)
    for page in pages:
        verdict = verdicts.get(page.claim.id, Verdict(failure=page.failure))
        settlement = _settlement(page, verdict.failure, stored.get(page.content_hash), now)
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


def _settlement(
    page: Page, failure: Failure | None, stored_page_id: uuid.UUID | None, now: dt.datetime
) -> Settlement:
    claim = page.claim
    retry = is_asked_again(claim, failure)
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
        fetched_at=page.fetched_at,
        from_cache=page.not_modified,
        stored_page_id=stored_page_id,
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
