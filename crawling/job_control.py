"""What people do to whole jobs: pause, resume, cancel, try the failed pages again."""

from __future__ import annotations

from django.db import transaction

from accounts import audit
from accounts.audit import SYSTEM, Actor
from common.errors import Conflict, InvalidState
from crawling import control, jobs
from crawling.control import Order
from crawling.models import CrawlJob, CrawlTask
from crawling.states import Status

cancel_job = jobs.cancel

PAUSABLE = (CrawlJob.Status.PENDING, CrawlJob.Status.RUNNING)
RETRIABLE = (CrawlJob.Status.RUNNING, CrawlJob.Status.PARTIAL_SUCCESS, CrawlJob.Status.FAILED)


@transaction.atomic
def pause_job(job: CrawlJob, *, actor: Actor = SYSTEM) -> CrawlJob:
    """Its tasks wait; pages on their way are dropped and fetched again later."""
    locked = _lock(job, PAUSABLE, "paused")
    _to_all(locked, "pause", control.ALLOWED["pause"], actor)
    return _move(locked, CrawlJob.Status.PAUSED, "pause", actor)


@transaction.atomic
def resume_job(job: CrawlJob, *, actor: Actor = SYSTEM) -> CrawlJob:
    locked = _lock(job, (CrawlJob.Status.PAUSED,), "resumed")
    _to_all(locked, "resume", control.ALLOWED["resume"], actor)
    started = CrawlJob.Status.RUNNING if locked.started_at else CrawlJob.Status.PENDING
    return _move(locked, started, "resume", actor)


@transaction.atomic
def retry_job(job: CrawlJob, *, actor: Actor = SYSTEM) -> CrawlJob:
    """The failed pages of a job once more, with all their tries."""
    locked = _lock(job, RETRIABLE, "retried")
    if not CrawlTask.objects.filter(job=locked, status=Status.FAILED).exists():
        raise InvalidState("No page of this job has failed: there is nothing to retry.")
    if not _to_all(locked, "restart", (Status.FAILED,), actor):
        raise Conflict("Every failed page of this job already waits in another job.")
    before = {"status": locked.status}
    locked.refresh_from_db()
    audit.record(actor, "retry", locked, client_id=locked.client_id, before=before)
    return locked


def _lock(job: CrawlJob, allowed: tuple[str, ...], done: str) -> CrawlJob:
    locked = CrawlJob.objects.select_for_update(of=("self",), no_key=True).get(pk=job.pk)
    if locked.status not in allowed:
        names = ", ".join(allowed)
        raise InvalidState(f"A job that is {locked.status} cannot be {done}; only: {names}.")
    return locked


def _to_all(job: CrawlJob, action: str, states: tuple[str, ...], actor: Actor) -> int:
    tasks = CrawlTask.objects.filter(job=job, status__in=states)
    ids = list(tasks.values_list("id", flat=True))
    return len(control.perform(Order(action=action), ids, actor=actor))


def _move(job: CrawlJob, to: str, verb: str, actor: Actor) -> CrawlJob:
    before, job.status = {"status": job.status}, to
    job.save(update_fields=["status", "updated_at"])
    audit.record(actor, verb, job, client_id=job.client_id, before=before)
    return job
