"""A move of the whole shop is one event with its members, not an event for each of them.

The first few are told at once, as every change. Once half of what a run has looked at
moved the same way, the others are gathered, and the end of the run tells of all.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.utils import timezone

from crawling.models import CrawlJob
from monitoring import second_looks
from monitoring.changes import Kind, News
from monitoring.facts import website_object
from monitoring.models import Change, Website
from notifications.events import EventDraft, publish

if TYPE_CHECKING:
    from monitoring.intake import Check

LEAST_MEMBERS = 10
LEAST_SHARE = 0.5
# An event stays below 20 kB; all members are at the address it names.
LISTED = 50
MAIN_KINDS = (Kind.PRICE_CHANGED, Kind.STOCK_CHANGED)
Movement = tuple[uuid.UUID, str]
MOVED = """
    SELECT crawl_job_id,
           CASE WHEN kind = 'stock_changed' THEN 'stock ' || new
                WHEN pct > 0 THEN 'price up' ELSE 'price down' END AS movement, count(*)
    FROM monitoring_change
    WHERE crawl_job_id = ANY(%s) AND kind IN ('price_changed', 'stock_changed')
      AND status = 'confirmed'
    GROUP BY 1, 2
"""


def movement(news: News) -> str | None:
    """What others would do with it in a move of the whole shop."""
    if news.quarantined:
        return None
    if news.kind == Kind.STOCK_CHANGED:
        return f"stock {news.new}"
    if news.kind == Kind.PRICE_CHANGED and news.pct is not None:
        return "price up" if news.pct > 0 else "price down"
    return None


def is_campaign(moved: int, looked_at: int) -> bool:
    return moved >= LEAST_MEMBERS and moved >= looked_at * LEAST_SHARE


def find(checks: Sequence[Check], looked_at: Counter[uuid.UUID]) -> set[Movement]:
    """The movements of this batch that are a campaign by now, by job."""
    moved: Counter[Movement] = Counter()
    for check in _first_looks(checks):
        moved.update((check.page.claim.job_id, found) for found in movements_of(check))
    if sum(moved.values()) == 0:
        return set()
    jobs = {job_id for job_id, _ in moved}
    moved.update({key: count for key, count in _moved_before(jobs).items() if key in moved})
    rows = CrawlJob.objects.filter(pk__in=jobs).values_list("pk", "processed")
    processed = Counter(dict(rows)) + looked_at
    return {key for key, count in moved.items() if is_campaign(count, processed[key[0]])}


def _first_looks(checks: Sequence[Check]) -> Iterable[Check]:
    """A run of second looks sees nothing but what moved: its share says nothing."""
    return [check for check in checks if check.page.claim.purpose != second_looks.PURPOSE]


def movements_of(check: Check) -> Iterable[str]:
    return filter(None, (movement(news) for news in check.judgement.news))


def _moved_before(job_ids: Iterable[uuid.UUID]) -> dict[Movement, int]:
    with connection.cursor() as cursor:
        cursor.execute(MOVED, [list(job_ids)])
        return {(job_id, found): count for job_id, found, count in cursor.fetchall()}


def announce(job: CrawlJob) -> None:
    """One event for each kind of campaign of a run; told twice it is still one."""
    folded = Change.objects.filter(campaign_id=job.pk)
    kinds = set(folded.values_list("kind", flat=True))
    if not kinds or job.website_id is None:
        return
    website = Website.objects.get(pk=job.website_id)
    mains = [kind for kind in MAIN_KINDS if kind in kinds]
    members = Change.objects.filter(
        crawl_job_id=job.pk, kind__in=mains, status=Change.Status.CONFIRMED, variant_key=""
    )
    members.filter(campaign_id=None).update(campaign_id=job.pk)
    publish([_draft(website, job, kind) for kind in mains])


def _draft(website: Website, job: CrawlJob, kind: str) -> EventDraft:
    rows = Change.objects.filter(campaign_id=job.pk, kind=kind)
    listed = rows.select_related("product").order_by("occurred_at", "id")[:LISTED]
    return EventDraft(
        client_id=website.client_id,
        type="website.campaign",
        cause=uuid.uuid5(job.pk, kind),
        occurred_at=timezone.now(),
        website_id=website.pk,
        object_id=website.pk,
        data={
            "object": website_object(website),
            "change": {
                "kind": kind,
                "members": rows.count(),
                "looked_at": job.processed,
                "job_id": str(job.pk),
                "url": f"/api/v1/changes?campaign={job.pk}",
            },
            "members": [_member(change) for change in listed],
        },
    )


def _member(change: Change) -> dict[str, object]:
    return {
        "id": str(change.product_id),
        "name": change.product.name[:120],
        "old": change.old,
        "new": change.new,
        "pct": None if change.pct is None else str(change.pct),
    }


def announce_forgotten() -> None:
    """Runs that were cancelled half way tell what they had gathered."""
    since = timezone.now() - dt.timedelta(days=2)
    folded = Change.objects.filter(occurred_at__gte=since).exclude(campaign_id=None)
    over = CrawlJob.objects.filter(pk__in=folded.values("campaign_id")).exclude(
        status__in=CrawlJob.LIVE
    )
    for job in over.order_by("id"):
        with transaction.atomic():
            announce(job)
