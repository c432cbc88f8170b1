"""Stand-alone URLs that come round again, on a grid.

``next_crawl_at`` of the row that carries the flag is always a point of the grid, so the
grid outlives retries, restarts and outages. Slots that were missed are counted and
left: there is one next run, never a burst.
"""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from accounts import audit
from accounts.audit import SYSTEM, Actor
from accounts.models import Client
from common.errors import Conflict, DomainBlocked, Invalid
from common.http import check_target
from common.urls import normalize_url, url_hash
from crawling import frontier
from crawling.frontier import Target
from crawling.models import CrawlJob, CrawlProfile, CrawlTask, Domain

logger = logging.getLogger(__name__)

SHORTEST_SECONDS = 60
LONGEST_SECONDS = 366 * 86_400
BATCH = 500


def next_slot(
    slot: dt.datetime, frequency_seconds: int, after: dt.datetime
) -> tuple[dt.datetime, int]:
    """The first point of the grid through ``slot`` that lies after a moment and not
    before the slot itself; and how many points were passed over."""
    if slot > after:
        return slot, 0
    step = dt.timedelta(seconds=frequency_seconds)
    passed = (after - slot) // step + 1
    return slot + passed * step, passed


def add_recurring(
    url: str,
    *,
    purpose: str = "document",
    frequency_seconds: int | None = None,
    client: Client | None = None,
    priority: int = 5,
    profile: CrawlProfile | None = None,
    actor: Actor = SYSTEM,
) -> CrawlTask:
    """Crawl a URL now, and again on its grid until somebody stops it."""
    if purpose not in settings.PAGE_CONSUMERS:
        known = ", ".join(sorted(settings.PAGE_CONSUMERS))
        raise Invalid(f"Nobody reads pages of this purpose; known are: {known}.", attr="purpose")
    target = check_target(url)
    with transaction.atomic():
        frequency = frequency_seconds or _domain_of(target).default_crawl_frequency_seconds
        check_frequency(frequency)
        client_id = client.pk if client else None
        _refuse_twin(target, purpose, client_id)
        task = _queue(target, purpose, client_id, priority, timezone.now(), profile)
        if task is None:
            raise Conflict("This URL is being crawled just now: try again later.", attr="url")
        _begin(task, frequency, actor)
    return task


def _begin(task: CrawlTask, frequency: int, actor: Actor) -> None:
    task.is_recurring, task.crawl_frequency_seconds = True, frequency
    task.next_crawl_at = task.scheduled_at + dt.timedelta(seconds=frequency)
    task.created_by = actor.name[:64]
    task.save(update_fields=[*CARRIED, "created_by", "updated_at"])
    after = {"crawl_frequency_seconds": frequency, "purpose": task.purpose}
    audit.record(actor, "add_recurring", task, client_id=task.client_id, after=after)


CARRIED = ("is_recurring", "crawl_frequency_seconds", "next_crawl_at")


def check_frequency(seconds: int) -> None:
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        text = f"Must be {SHORTEST_SECONDS} to {LONGEST_SECONDS} seconds."
        raise Invalid(text, attr="crawl_frequency_seconds")


def set_frequency(task: CrawlTask, seconds: int | None) -> None:
    """Change how often a stand-alone task recurs, on the row given; None ends it."""
    if task.website_id is not None:
        text = "Pages of a website follow its schedule: change that."
        raise Invalid(text, attr="crawl_frequency_seconds")
    if seconds is None:
        task.is_recurring, task.crawl_frequency_seconds, task.next_crawl_at = False, None, None
        return
    check_frequency(seconds)
    anchor = task.scheduled_at
    if task.next_crawl_at is not None and task.crawl_frequency_seconds:
        anchor = task.next_crawl_at - dt.timedelta(seconds=task.crawl_frequency_seconds)
    task.is_recurring, task.crawl_frequency_seconds = True, seconds
    first = anchor + dt.timedelta(seconds=seconds)
    task.next_crawl_at, _ = next_slot(first, seconds, timezone.now())


def queue_due() -> int:
    """Start the runs that are due; answers how many. Two callers at once make one run."""
    _roll_on()
    ended = CrawlTask.objects.filter(is_recurring=True, status__in=CrawlTask.TERMINAL)
    due = ended.filter(next_crawl_at__lte=timezone.now()).order_by("next_crawl_at")
    return sum(_start_next(pk) for pk in list(due.values_list("pk", flat=True)[:BATCH]))


@transaction.atomic
def _roll_on() -> None:
    """A run that outlasted its next slots waits for the first one after its end."""
    ended = CrawlTask.objects.filter(is_recurring=True, status__in=CrawlTask.TERMINAL)
    outlasted = ended.filter(next_crawl_at__lte=F("completed_at"))
    for task in outlasted.select_for_update(skip_locked=True, of=("self",))[:BATCH]:
        assert task.next_crawl_at is not None
        assert task.crawl_frequency_seconds is not None
        assert task.completed_at is not None
        slot, missed = next_slot(
            task.next_crawl_at, task.crawl_frequency_seconds, task.completed_at
        )
        _note(task, missed)
        CrawlTask.objects.filter(pk=task.pk).update(next_crawl_at=slot)


@transaction.atomic
def _start_next(pk: Any) -> bool:
    """A new row for the next run; the flag moves to it in the same transaction."""
    now = timezone.now()
    rows = CrawlTask.objects.select_for_update(skip_locked=True, of=("self",))
    task = rows.filter(pk=pk, is_recurring=True, next_crawl_at__lte=now).first()
    if task is None or task.next_crawl_at is None or task.crawl_frequency_seconds is None:
        return False
    slot, passed = next_slot(task.next_crawl_at, task.crawl_frequency_seconds, now)
    _note(task, passed - 1)
    run = _queue(
        task.url,
        task.purpose,
        task.client_id,
        task.priority,
        task.next_crawl_at,
        task.job.profile,
    )
    carrier = run or _live_twin(task)
    if carrier is not None:
        _hand_on(task, carrier, slot)
    return run is not None


def _hand_on(task: CrawlTask, carrier: CrawlTask, slot: dt.datetime) -> None:
    CrawlTask.objects.filter(pk=task.pk).update(is_recurring=False, next_crawl_at=None)
    CrawlTask.objects.filter(pk=carrier.pk, is_recurring=False).update(
        is_recurring=True,
        crawl_frequency_seconds=task.crawl_frequency_seconds,
        next_crawl_at=slot,
        max_retries=task.max_retries,
        created_by=task.created_by,
    )


def _queue(
    url: str,
    purpose: str,
    client_id: Any,
    priority: int,
    slot_at: dt.datetime,
    profile: CrawlProfile | None,
) -> CrawlTask | None:
    job = frontier.open_job(
        kind=CrawlJob.Kind.URLS,
        triggered_by=CrawlJob.Trigger.SCHEDULED,
        client_id=client_id,
        slot_at=slot_at,
        priority=priority,
        profile_id=profile.pk if profile else None,
    )
    assert job is not None
    if frontier.submit(job, purpose=purpose, targets=[Target(url=url)]):
        return CrawlTask.objects.get(job=job)
    job.delete()
    return None


def _live_twin(task: CrawlTask) -> CrawlTask | None:
    """Somebody else crawls this URL just now: that is this run."""
    live = _same(task.url_hash, task.purpose, task.client_id)
    return live.exclude(status__in=CrawlTask.TERMINAL).first()


def _refuse_twin(url: str, purpose: str, client_id: Any) -> None:
    same = _same(url_hash(normalize_url(url)), purpose, client_id)
    if same.filter(is_recurring=True).exists():
        raise Conflict("This URL recurs already: change that task instead.", attr="url")


def _same(digest: str, purpose: str, client_id: Any) -> QuerySet[CrawlTask]:
    return CrawlTask.objects.filter(
        url_hash=digest, purpose=purpose, client_id=client_id, website_id=None
    )


def _domain_of(url: str) -> Domain:
    (domain_id,) = frontier.ensure_domains([url]).values()
    domain = Domain.objects.get(pk=domain_id)
    if domain.is_blocked:
        raise DomainBlocked("This domain is blocked by the operator.", attr="url")
    return domain


def _note(task: CrawlTask, missed: int) -> None:
    if missed > 0:
        logger.warning("%d slots of %s were missed", missed, task.url, extra={"missed": missed})
