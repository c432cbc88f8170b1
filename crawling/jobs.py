"""Jobs: counters that are progress, and the moment a job is over."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import audit
from accounts.audit import SYSTEM, Actor
from common.errors import InvalidState
from crawling.models import CrawlJob, CrawlTask
from crawling.states import Status, advance


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


@transaction.atomic(savepoint=False)
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


@transaction.atomic(savepoint=False)
def start(job_ids: Iterable[uuid.UUID]) -> None:
    pending = CrawlJob.objects.filter(id__in=set(job_ids), status=CrawlJob.Status.PENDING)
    pending.update(status=CrawlJob.Status.RUNNING, started_at=timezone.now())


@transaction.atomic(savepoint=False)
def finish_done(job_ids: Sequence[uuid.UUID]) -> None:
    """Finish those of the jobs whose tasks have all come to an end."""
    open_tasks = CrawlTask.objects.filter(job=OuterRef("pk")).exclude(status__in=CrawlTask.TERMINAL)
    done = CrawlJob.objects.live().filter(~Exists(open_tasks), id__in=job_ids)
    for job in done.order_by("id").select_for_update(of=("self",), no_key=True):
        _finish(job)


def _finish(job: CrawlJob) -> None:
    if job.errors == 0:
        job.status = CrawlJob.Status.SUCCESS
    elif job.errors < job.processed:
        job.status = CrawlJob.Status.PARTIAL_SUCCESS
    else:
        job.status = CrawlJob.Status.FAILED
    job.completed_at = timezone.now()
    job.started_at = job.started_at or job.completed_at
    job.save(update_fields=["status", "completed_at", "started_at", "updated_at"])
    if consumer := settings.JOB_CONSUMERS.get(job.kind):
        tell: Callable[[CrawlJob], None] = import_string(consumer)
        tell(job)


@transaction.atomic
def cancel(job: CrawlJob, *, actor: Actor = SYSTEM) -> CrawlJob:
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
    return locked
