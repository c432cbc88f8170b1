"""Stored pages are read again, without the network: tasks that wait in ``queued_parse``.

They are claimed and leased as pages to fetch are, and go the same way through
``handover``. ``fetched_at`` stays the time the page came: a second reading replaces no
history row and tells no old news.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now

from crawling import jobs, leases, pages
from crawling.fetching import Page
from crawling.handover import LOST_FOR_EVER, hand_over
from crawling.leases import CLAIM_COLUMNS, Claim
from crawling.models import CrawlTask
from crawling.states import Status, advance

DUE = """
    SELECT t.id FROM crawling_crawltask t
    WHERE t.status = 'queued_parse' AND t.scheduled_at <= statement_timestamp()
    ORDER BY t.priority, t.score DESC, t.scheduled_at
    LIMIT %s
"""


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


@transaction.atomic
def claim(limit: int) -> list[Page]:
    """Claim pages to read again, the most urgent first; without their bodies yet."""
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
    found = _claimed(mine) if ids else []
    jobs.start(page.claim.job_id for page in found)
    return found


def _claimed(tasks: QuerySet[CrawlTask]) -> list[Page]:
    came_at = Coalesce("fetched_at", "stored_page__first_seen_at", "created_at")
    answer = ("http_status", "response_time_ms", "final_url")
    rows = tasks.order_by("priority", "-score", "scheduled_at").values_list(
        *CLAIM_COLUMNS, *answer, "stored_page__content_hash", came_at
    )
    return [_page(Claim(*row[: len(CLAIM_COLUMNS)]), *row[len(CLAIM_COLUMNS) :]) for row in rows]


def _page(
    claim: Claim,
    status: int | None,
    elapsed_ms: int | None,
    final_url: str,
    content_hash: str | None,
    came_at: dt.datetime,
) -> Page:
    return Page(
        claim,
        came_at,
        None if content_hash else LOST_FOR_EVER,
        status=status,
        url=final_url or claim.url,
        elapsed_ms=elapsed_ms,
        content_hash=content_hash or "",
        reparsed=True,
    )


def _with_bodies(claimed: Sequence[Page]) -> list[Page]:
    bodies = pages.read_contents(page.content_hash for page in claimed if page.content_hash)
    return [
        replace(page, body=bodies[page.content_hash])
        if page.content_hash in bodies
        else replace(page, failure=LOST_FOR_EVER)
        for page in claimed
    ]
