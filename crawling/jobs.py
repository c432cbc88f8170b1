"""Jobs: counters that are progress, and the moment a job is over."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import audit
from accounts.audit import SYSTEM, Actor
from common.errors import InvalidState
from crawling.models import CrawlJob, CrawlTask
from crawling.states import Status, advance

SUMMARY_LINES = 5


@dataclass(slots=True)
class Tally:
    processed: int = 0
    changes: int = 0
    errors: int = 0
    retries: int = 0


def lock(job_ids: Iterable[uuid.UUID]) -> None:
    """Jobs are locked before tasks, websites, products and feeds, always in this order."""
    ordered = CrawlJob.objects.filter(id__in=set(job_ids)).order_by("id")
    list(ordered.select_for_update(no_key=True).values_list("id"))


@transaction.atomic
def count(tallies: Mapping[uuid.UUID, Tally]) -> None:
    """Add to the counters, and finish the jobs that have nothing left to do."""
    for job_id in sorted(tallies):
        tally = tallies[job_id]
        CrawlJob.objects.filter(id=job_id).update(
            processed=F("processed") + tally.processed,
            changes=F("changes") + tally.changes,
            errors=F("errors") + tally.errors,
            retries=F("retries") + tally.retries,
        )
    finish_done(list(tallies))


START = """
    UPDATE crawling_crawljob SET status = 'running', started_at = now()
    WHERE id = ANY(%s) AND status = 'pending'
"""


def start(job_ids: Iterable[uuid.UUID]) -> None:
    # Plain SQL: it is asked with every claim.
    with connection.cursor() as cursor:
        cursor.execute(START, [list(set(job_ids))])


@transaction.atomic
def finish_done(job_ids: Sequence[uuid.UUID]) -> None:
    """Finish those of the jobs whose tasks have all come to an end."""
    open_tasks = CrawlTask.objects.filter(job=OuterRef("pk")).exclude(status__in=CrawlTask.TERMINAL)
    done = CrawlJob.objects.live().filter(~Exists(open_tasks), id__in=job_ids)
    ended = list(done.order_by("id").select_for_update(of=("self",), no_key=True))
    for job in ended:
        _finish(job)
    _tell(ended)


def say_waiting(domain_id: uuid.UUID, reason: str) -> None:
    """Why nothing moves, for whoever looks at the job meanwhile."""
    unfinished = (Status.PENDING, Status.CRAWLING)
    waiting = CrawlTask.objects.filter(domain_id=domain_id, status__in=unfinished)
    held_up = CrawlJob.objects.live().filter(id__in=waiting.values("job_id"))
    held_up.exclude(error_summary=reason).update(error_summary=reason, updated_at=timezone.now())


def close_empty(job: CrawlJob) -> CrawlJob:
    """A job that found nothing to do says nothing about the shop: nobody is told."""
    job.status, job.completed_at = CrawlJob.Status.CANCELLED, timezone.now()
    job.error_summary = "Nothing to do: there are no pages, or they already wait in another job."
    job.save(update_fields=["status", "completed_at", "error_summary", "updated_at"])
    return job


def _summary(job: CrawlJob) -> str:
    """The most frequent errors, in words."""
    failed = CrawlTask.objects.filter(job=job, status=Status.FAILED)
    groups = failed.values_list("error_category", "error_message").annotate(n=Count("id"))
    return "\n".join(
        f"{n} × {category}: {message[:200]}"
        for category, message, n in groups.order_by("-n", "error_message")[:SUMMARY_LINES]
    )


@transaction.atomic
def reopen(job_ids: Iterable[uuid.UUID]) -> None:
    """A job that was over has work again."""
    over = CrawlJob.objects.filter(id__in=set(job_ids)).exclude(status__in=CrawlJob.LIVE)
    over.update(status=CrawlJob.Status.RUNNING, completed_at=None, updated_at=Now())


def _finish(job: CrawlJob) -> None:
    if job.total and not job.processed:
        job.status = CrawlJob.Status.CANCELLED
    elif job.errors == 0:
        job.status = CrawlJob.Status.SUCCESS
    elif job.errors < job.processed:
        job.status = CrawlJob.Status.PARTIAL_SUCCESS
    else:
        job.status = CrawlJob.Status.FAILED
    job.completed_at = timezone.now()
    job.started_at = job.started_at or job.completed_at
    job.error_summary = _summary(job) if job.errors else ""
    job.save(update_fields=["status", "completed_at", "started_at", "error_summary", "updated_at"])
    consumer = settings.JOB_CONSUMERS.get(job.kind)
    if consumer and job.status != CrawlJob.Status.CANCELLED:
        tell: Callable[[CrawlJob], None] = import_string(consumer)
        tell(job)


def _tell(ended: Sequence[CrawlJob]) -> None:
    tell: Callable[[Sequence[CrawlJob]], None] = import_string(settings.JOB_NEWS)
    tell(ended)


@transaction.atomic
def give_up(job: CrawlJob, reason: str) -> None:
    """Fail what still waits; the job ends, and whoever asked for it is told."""
    lock([job.pk])
    waiting = CrawlTask.objects.filter(job=job)
    failed = advance(
        waiting.exclude(status=Status.PAUSED),
        Status.FAILED,
        leased_until=None,
        error_category=CrawlTask.Category.NETWORK,
        error_message=reason,
        completed_at=timezone.now(),
    )
    count({job.pk: Tally(processed=failed, errors=failed)})


@transaction.atomic
def cancel(job: CrawlJob, *, actor: Actor = SYSTEM, quietly: bool = False) -> CrawlJob:
    """Stop a job; pages in flight are dropped when they come back."""
    locked = CrawlJob.objects.select_for_update(of=("self",)).get(pk=job.pk)
    if locked.status not in CrawlJob.LIVE:
        allowed = ", ".join(CrawlJob.LIVE)
        raise InvalidState(f"A job that is {locked.status} cannot be cancelled; only: {allowed}.")
    advance(
        CrawlTask.objects.filter(job=locked),
        Status.CANCELLED,
        leased_until=None,
        completed_at=timezone.now(),
    )
    before = {"status": locked.status}
    locked.status, locked.completed_at = CrawlJob.Status.CANCELLED, timezone.now()
    locked.save(update_fields=["status", "completed_at", "updated_at"])
    audit.record(actor, "cancel", locked, client_id=locked.client_id, before=before)
    if not quietly:
        _tell([locked])
    return locked
