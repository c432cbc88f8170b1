"""Runs over a website: discovery, baseline, monitoring; how they start and what their
end means for the website."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from crawling import frontier, jobs
from crawling.frontier import Target
from crawling.models import CrawlJob
from monitoring import schedules
from monitoring.models import Product, Website
from notifications.events import EventDraft, publish

logger = logging.getLogger(__name__)

Kind = CrawlJob.Kind
GOOD = (CrawlJob.Status.SUCCESS, CrawlJob.Status.PARTIAL_SUCCESS)
# Failed runs in a row before a website is given up.
FAILURES_ALLOWED = 3


@transaction.atomic
def start_discovery(website: Website, *, triggered_by: str) -> CrawlJob:
    job = _open(website, Kind.DISCOVERY, triggered_by, priority=3)
    assert job is not None
    targets = [Target(url=url) for url in website.seed_urls]
    return _fill(job, "discover", targets)


@transaction.atomic
def start_baseline(website: Website, products: Iterable[Product], *, triggered_by: str) -> CrawlJob:
    """The first look at freshly approved products."""
    job = _open(website, Kind.BASELINE, triggered_by, priority=2)
    assert job is not None
    return _fill(job, "product", _targets(products))


@transaction.atomic
def start_monitoring(
    website: Website, *, triggered_by: str, slot_at: dt.datetime | None = None
) -> CrawlJob | None:
    """One look at every product of the website; None when its slot already had one."""
    job = _open(website, Kind.MONITOR, triggered_by, slot_at=slot_at)
    if job is None:
        return None
    return _fill(job, "product", _targets(website.products.all().monitored()))


def run_scheduled(website_id: uuid.UUID) -> CrawlJob | None:
    """What beat asks for; a website that is gone or not active, or whose client is
    suspended, is left alone."""
    rows = Website.objects.select_related("periodic_task__interval")
    website = rows.filter(pk=website_id, client__is_active=True).first()
    if website is None or website.status != Website.Status.ACTIVE:
        return None
    slot = _due_slot(website)
    if slot is None or not _run_before_is_over(website):
        return None
    return start_monitoring(website, triggered_by=CrawlJob.Trigger.SCHEDULED, slot_at=slot)


def _run_before_is_over(website: Website) -> bool:
    """A slow run goes on and this slot is left out; one that got no answer by now failed."""
    live = CrawlJob.objects.live().filter(website_id=website.pk, kind=Kind.MONITOR)
    for job in live.order_by("id"):
        if job.processed:
            logger.warning("website %s: the run before is not over, a slot is left out", website.pk)
            return False
        jobs.give_up(job, "The shop did not answer before the next run was due.")
    website.refresh_from_db(fields=["status"])
    return website.status == Website.Status.ACTIVE


def _due_slot(website: Website) -> dt.datetime | None:
    mine = CrawlJob.objects.filter(website_id=website.pk, kind=Kind.MONITOR)
    last = mine.aggregate(last=Max("slot_at"))["last"]
    return schedules.slot_of(website, timezone.now(), last)


def finish_discovery(job: CrawlJob) -> None:
    website = _lock(job)
    if website is None:
        return
    found = website.products.filter(approval=Product.Approval.PENDING).count()
    _tell(website, "website.discovered", job, {"candidates": found, "job_id": str(job.pk)})


def finish_baseline(job: CrawlJob) -> None:
    finish_monitor(job)


def finish_monitor(job: CrawlJob) -> None:
    """A good run forgives; three bad ones in a row stop the website and say so."""
    website = _lock(job)
    if website is None:
        return
    website.last_crawl_status = job.status
    if job.status in GOOD:
        website.last_successful_crawl_at = job.completed_at
        website.consecutive_failures = 0
    else:
        website.consecutive_failures += 1
    given_up = (
        website.consecutive_failures >= FAILURES_ALLOWED and website.status == Website.Status.ACTIVE
    )
    if given_up:
        website.status = Website.Status.FAILED
    website.save()
    if given_up:
        schedules.switch(website, on=False)
        _tell(website, "website.failed", job, {"failed_runs": website.consecutive_failures})


def _open(
    website: Website,
    kind: str,
    triggered_by: str,
    *,
    slot_at: dt.datetime | None = None,
    priority: int = 5,
) -> CrawlJob | None:
    return frontier.open_job(
        kind=kind,
        triggered_by=triggered_by,
        client_id=website.client_id,
        website_id=website.pk,
        slot_at=slot_at,
        priority=priority,
    )


def _fill(job: CrawlJob, purpose: str, targets: list[Target]) -> CrawlJob:
    frontier.submit(job, purpose=purpose, targets=targets)
    return jobs.close_empty(job) if job.total == 0 else job


def _targets(products: Iterable[Product]) -> list[Target]:
    return [Target(url=p.original_url, object_id=p.pk) for p in products]


def _lock(job: CrawlJob) -> Website | None:
    assert job.website_id is not None
    rows = Website.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("periodic_task", "client").filter(pk=job.website_id).first()


def _tell(website: Website, kind: str, job: CrawlJob, extra: dict[str, object]) -> None:
    publish([website_event(website, kind, cause=job.pk, extra=extra)])


def website_event(
    website: Website, kind: str, *, cause: uuid.UUID, extra: dict[str, object] | None = None
) -> EventDraft:
    return EventDraft(
        client_id=website.client_id,
        type=kind,
        cause=cause,
        occurred_at=timezone.now(),
        website_id=website.pk,
        object_id=website.pk,
        data={
            "object": {
                "id": str(website.pk),
                "name": website.name,
                "base_url": website.base_url,
                "status": website.status,
                **(extra or {}),
            }
        },
    )
