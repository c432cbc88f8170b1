"""Runs over a website: discovery, baseline, monitoring; how they start and what their
end means for the website."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from common.urls import normalize_url, url_hash
from crawling import frontier, jobs
from crawling.frontier import Target
from crawling.models import CrawlJob
from monitoring import campaigns, found_urls, schedules
from monitoring.facts import website_object
from monitoring.found_urls import Source, State
from monitoring.models import Product, Website
from notifications.events import EventDraft, publish

logger = logging.getLogger(__name__)

Kind = CrawlJob.Kind
GOOD = (CrawlJob.Status.SUCCESS, CrawlJob.Status.PARTIAL_SUCCESS)
# Failed runs in a row before a website is given up.
FAILURES_ALLOWED = 3
# Where discovery looks, unless told otherwise.
SOURCES = ("sitemap", "links", "feed")
# Before everything else that is found.
FIRST_SEED, SEED = 3.0, 2.0
# Enough to see that a shop is back.
PROBE_PAGES = 3


@transaction.atomic
def start_discovery(
    website: Website,
    *,
    triggered_by: str,
    max_pages: int | None = None,
    sources: Sequence[str] = SOURCES,
) -> CrawlJob:
    """Seed pages first; what follows from them is the affair of ``discovery``."""
    pages = website.seed_urls or [website.base_url]
    most = max_pages or website.discovery_max_pages or settings.DISCOVERY_MAX_PAGES
    parameters = {
        "max_pages": min(most, settings.DISCOVERY_MAX_PAGES),
        "sources": list(sources),
        "test_page": url_hash(normalize_url(pages[0])),
    }
    job = _open(website, Kind.DISCOVERY, triggered_by, priority=3, parameters=parameters)
    assert job is not None
    rules = found_urls.rules_of(website)
    seeds = [
        rules.sight(url, source=Source.SEED, score=FIRST_SEED if index == 0 else SEED)
        for index, url in enumerate(pages)
    ]
    wanted = [replace(one, state=State.WAITING) for one in seeds if one]
    found_urls.remember(job, wanted)
    found_urls.ask_for_next(job)
    return jobs.close_empty(job) if job.total == 0 else job


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


@transaction.atomic
def start_probe(website: Website) -> CrawlJob | None:
    """A few pages of a website that was given up; None where it has none."""
    few = list(website.products.all().monitored().order_by("-last_crawled_at")[:PROBE_PAGES])
    if not few:
        return None
    job = _open(website, Kind.MONITOR, CrawlJob.Trigger.RETRY, parameters={"probe": True})
    assert job is not None
    return _fill(job, "product", _targets(few))


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


def finish_second_look(job: CrawlJob) -> None:
    """What it confirmed may be a move of the whole shop."""
    if job.website_id is not None and lock_website_of(job) is not None:
        campaigns.announce(job)


def finish_monitor(job: CrawlJob) -> Website | None:
    """A good run forgives; three bad ones in a row stop the website and say so."""
    website = lock_website_of(job)
    if website is None:
        return None
    campaigns.announce(job)
    website.last_crawl_status = job.status
    if job.status in GOOD:
        website.last_successful_crawl_at = job.completed_at
        website.consecutive_failures = 0
        _settle(website, job, Website.Status.FAILED, Website.Status.ACTIVE, "website.activated")
    else:
        website.consecutive_failures += 1
        if website.consecutive_failures >= FAILURES_ALLOWED:
            _settle(website, job, Website.Status.ACTIVE, Website.Status.FAILED, "website.failed")
    website.save()
    return website


def _settle(website: Website, job: CrawlJob, before: str, to: str, kind: str) -> None:
    """A website that fails too often is given up; one that answers again is taken up."""
    if website.status != before:
        return
    website.status = to
    schedules.switch(website, on=to == Website.Status.ACTIVE)
    extra: dict[str, object] = {}
    if to == Website.Status.FAILED:
        extra = {"failed_runs": website.consecutive_failures, "job_id": str(job.pk)}
    tell(website, kind, job, extra)


def _open(
    website: Website,
    kind: str,
    triggered_by: str,
    *,
    slot_at: dt.datetime | None = None,
    priority: int = 5,
    parameters: dict[str, Any] | None = None,
) -> CrawlJob | None:
    return frontier.open_job(
        kind=kind,
        triggered_by=triggered_by,
        client_id=website.client_id,
        website_id=website.pk,
        slot_at=slot_at,
        priority=priority,
        parameters=parameters,
        profile_id=website.crawl_profile_id,
    )


def _fill(job: CrawlJob, purpose: str, targets: list[Target]) -> CrawlJob:
    frontier.submit(job, purpose=purpose, targets=targets)
    return jobs.close_empty(job) if job.total == 0 else job


def _targets(products: Iterable[Product]) -> list[Target]:
    return [Target(url=p.original_url, object_id=p.pk) for p in products]


def lock_website_of(job: CrawlJob) -> Website | None:
    assert job.website_id is not None
    rows = Website.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("periodic_task", "client").filter(pk=job.website_id).first()


def tell(website: Website, kind: str, job: CrawlJob, extra: dict[str, object]) -> None:
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
        data={"object": website_object(website) | (extra or {})},
    )
