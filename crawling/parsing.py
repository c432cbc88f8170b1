"""Stored pages are read again, without the network: tasks that wait in ``queued_parse``.

They are claimed and leased as pages to fetch are, and go the same way through
``handover``. ``fetched_at`` stays the time the page came: a second reading replaces no
history row and tells no old news.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from common.urls import host_of, normalize_url, url_hash
from common.wakeups import wake_on_commit
from crawling import frontier, jobs, leases, pages
from crawling.fetching import Page
from crawling.handover import LOST_FOR_EVER, hand_over
from crawling.leases import CLAIM_COLUMNS, Claim
from crawling.models import CrawlJob, CrawlTask
from crawling.states import Status, advance

DUE = """
    SELECT t.id FROM crawling_crawltask t
    WHERE t.status = 'queued_parse' AND t.scheduled_at <= statement_timestamp()
    ORDER BY t.priority, t.score DESC, t.scheduled_at
    LIMIT %s
"""
PAGE_COLUMNS = ("stored_page__content_hash", "stored_page__content_type", "stored_page__charset")


@dataclass(frozen=True, slots=True)
class StoredLook:
    """A page that came once, to be read again for somebody."""

    url: str
    final_url: str
    object_id: uuid.UUID
    stored_page_id: uuid.UUID
    fetched_at: dt.datetime


@transaction.atomic
def submit_stored(job: CrawlJob, *, purpose: str, looks: Sequence[StoredLook]) -> int:
    """Add stored pages to a job; answers how many joined. A URL that waits already, to be
    fetched or read, is left to that."""
    domains = frontier.ensure_domains(look.url for look in looks)
    tasks = [_task(job, purpose, domains[host_of(look.url)], look) for look in looks]
    CrawlTask.objects.bulk_create(tasks, ignore_conflicts=True, batch_size=frontier.BATCH)
    job.total = CrawlTask.objects.filter(job=job).count()
    CrawlJob.objects.filter(pk=job.pk).update(total=job.total)
    wake_on_commit(frontier.PARSE)
    return job.total


def _task(job: CrawlJob, purpose: str, domain_id: uuid.UUID, look: StoredLook) -> CrawlTask:
    normalized = normalize_url(look.url)
    return CrawlTask(
        job=job,
        domain_id=domain_id,
        client_id=job.client_id,
        website_id=job.website_id,
        object_id=look.object_id,
        purpose=purpose,
        url=look.url,
        final_url=look.final_url,
        normalized_url=normalized,
        url_hash=url_hash(normalized),
        status=Status.QUEUED_PARSE,
        priority=job.priority,
        scheduled_at=timezone.now(),
        stored_page_id=look.stored_page_id,
        fetched_at=look.fetched_at,
    )


def has_due() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(DUE, [1])
        return cursor.fetchone() is not None


def run_parse_slice(seconds: float | None = None) -> int:
    """Read stored pages for a while; answers how many were written."""
    deadline = time.monotonic() + (seconds or settings.CRAWL_SLICE_SECONDS)
    written = 0
    while time.monotonic() < deadline and (claimed := claim(settings.CRAWL_BATCH_PAGES)):
        written += hand_over(_with_bodies(claimed))
    return written


def claim(limit: int) -> list[Page]:
    """Claim pages to read again, the most urgent first; without their bodies yet."""
    found = _take(limit)
    # Jobs are locked before tasks everywhere: so not while these are locked.
    jobs.start(page.claim.job_id for page in found)
    return found


@transaction.atomic
def _take(limit: int) -> list[Page]:
    with connection.cursor() as cursor:
        cursor.execute(f"{DUE} FOR UPDATE OF t SKIP LOCKED", [limit])
        ids = [row[0] for row in cursor.fetchall()]
    mine = CrawlTask.objects.filter(id__in=ids)
    advance(
        mine,
        Status.PARSING,
        leased_until=Now() + leases.lease_time(),
        fence=F("fence") + 1,
        claims=F("claims") + 1,
    )
    return _claimed(mine) if ids else []


def _claimed(tasks: QuerySet[CrawlTask]) -> list[Page]:
    came_at = Coalesce("fetched_at", "stored_page__first_seen_at", "created_at")
    answer = ("http_status", "response_time_ms", "final_url")
    rows = tasks.order_by("priority", "-score", "scheduled_at").values_list(
        *CLAIM_COLUMNS, *answer, *PAGE_COLUMNS, came_at
    )
    return [_page(Claim(*row[: len(CLAIM_COLUMNS)]), *row[len(CLAIM_COLUMNS) :]) for row in rows]


def _page(
    claim: Claim,
    status: int | None,
    elapsed_ms: int | None,
    final_url: str,
    content_hash: str | None,
    content_type: str | None,
    charset: str | None,
    came_at: dt.datetime,
) -> Page:
    return Page(
        claim,
        came_at,
        None if content_hash else LOST_FOR_EVER,
        status=status,
        url=final_url or claim.url,
        elapsed_ms=elapsed_ms,
        headers={"Content-Type": content_type_of(content_type or "", charset or "")},
        content_hash=content_hash or "",
        reparsed=True,
    )


def content_type_of(kind: str, charset: str) -> str:
    """The header as it came, of a page that is read again."""
    return f"{kind}; charset={charset}" if charset else kind


def _with_bodies(claimed: Sequence[Page]) -> list[Page]:
    bodies = pages.read_contents(page.content_hash for page in claimed if page.content_hash)
    return [
        replace(page, body=bodies[page.content_hash])
        if page.content_hash in bodies
        else replace(page, failure=LOST_FOR_EVER)
        for page in claimed
    ]
