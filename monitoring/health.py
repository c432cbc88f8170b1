"""Is a shop still readable? Failed websites are probed, and a parser that reads less of a
host's pages than it used to is told."""

from __future__ import annotations

import logging
import uuid

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from common.urls import host_of
from crawling.frontier import hold_websites
from crawling.models import CrawlJob, CrawlTask
from monitoring import runs
from monitoring.models import ParserHealth, Website
from notifications.events import EventDraft, publish

logger = logging.getLogger(__name__)

# Fewer pages than this say nothing about a parser.
FEWEST_PAGES = 5
# Percent points below the usual that are a drop, and that end one.
DROP, RECOVERY = 20.0, 10.0
# How much one run weighs in what is usual.
WEIGHT = 0.2


def probe_failed() -> int:
    """Look at a few pages of every website that was given up; one good run brings it back.
    Answers how many are being probed."""
    failed = Website.objects.filter(status=Website.Status.FAILED, client__is_active=True)
    return sum(_probe(pk) for pk in failed.values_list("pk", flat=True))


@transaction.atomic
def _probe(website_id: uuid.UUID) -> bool:
    hold_websites([website_id])
    rows = Website.objects.select_for_update(no_key=True, of=("self",)).select_related("client")
    website = rows.filter(pk=website_id, status=Website.Status.FAILED).first()
    live = CrawlJob.objects.live().filter(website_id=website_id, kind=CrawlJob.Kind.MONITOR)
    if website is None or live.exists():
        return False
    return runs.start_probe(website) is not None


def finish_run(job: CrawlJob) -> None:
    """What the end of a baseline or a monitoring run means for its website and its host."""
    website = runs.finish_monitor(job)
    read, unread = _pages_of(job)
    if website and read + unread >= FEWEST_PAGES:
        _judge(job, host_of(website.base_url), 100 * read / (read + unread))


def _judge(job: CrawlJob, host: str, share: float) -> None:
    """Compare what a run could read with what is usual for the host."""
    health = ParserHealth.objects.select_for_update().filter(host=host).first()
    if health is None:
        first = ParserHealth(host=host, usual_pct=share, last_pct=share)
        ParserHealth.objects.bulk_create([first], ignore_conflicts=True)
        return
    usual = health.usual_pct
    if health.dropped_at is None and share < usual - DROP:
        health.dropped_at = timezone.now()
        publish(_told(job, host, usual, share))
        logger.warning("parser: %.0f %% of %s read, usually %.0f %%", share, host, usual)
    elif health.dropped_at is not None and share >= usual - RECOVERY:
        health.dropped_at = None
    if health.dropped_at is None:
        # What is broken must not become the usual.
        health.usual_pct += WEIGHT * (share - usual)
    health.last_pct = share
    health.save()


def _pages_of(job: CrawlJob) -> tuple[int, int]:
    """Pages that came: those that could be read, and those that could not."""
    unreadable = Q(status="failed", error_category=CrawlTask.Category.PARSE)
    counted = CrawlTask.objects.filter(job=job, purpose="product").aggregate(
        read=Count("id", filter=Q(status="completed")), unread=Count("id", filter=unreadable)
    )
    return counted["read"], counted["unread"]


def watched_on(host: str) -> QuerySet[Website]:
    on_host = Q(base_url__startswith=f"https://{host}/") | Q(base_url__startswith=f"http://{host}/")
    return Website.objects.filter(on_host)


def _told(job: CrawlJob, host: str, usual: float, share: float) -> list[EventDraft]:
    """Everybody who watches the host; in the order of their feeds."""
    websites = watched_on(host).select_related("client").order_by("client_id", "id")
    extra: dict[str, object] = {
        "host": host,
        "success_pct": round(share, 1),
        "usual_pct": round(usual, 1),
        "job_id": str(job.pk),
    }
    return [
        runs.website_event(
            website,
            "parser.success_rate_dropped",
            cause=uuid.uuid5(job.pk, str(website.pk)),
            extra=extra,
        )
        for website in websites
    ]
