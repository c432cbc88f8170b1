"""Leases: one domain belongs to one worker, one task to one claim, by the database's clock.

A worker that dies keeps nothing: its leases run out and the sweeper returns its tasks. A
worker that comes back late is fenced off: its finishing write carries the fence number
of its claim and finds nothing.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from crawling import jobs, validators
from crawling.models import CrawlError, CrawlTask, Domain
from crawling.states import Status, advance
from crawling.validators import Validator

# A page that ended its worker this often is poison.
MAX_CLAIMS = 3
POISON = "the page was claimed three times and no worker survived it"


@dataclass(frozen=True, slots=True)
class Claim:
    """A task as its holder needs it."""

    id: uuid.UUID
    fence: int
    job_id: uuid.UUID
    domain_id: uuid.UUID
    client_id: uuid.UUID | None
    website_id: uuid.UUID | None
    object_id: uuid.UUID | None
    purpose: str
    url: str
    depth: int
    retry_count: int
    max_retries: int
    url_hash: str
    # What is known of the page since the last look; not a column.
    known: Validator | None = None


CLAIM_COLUMNS = [field.name for field in fields(Claim)][:-1]
DUE_DOMAINS = """
    SELECT d.id FROM crawling_domain d
    WHERE d.is_active AND NOT d.is_blocked
      AND (d.leased_until IS NULL OR d.leased_until < statement_timestamp())
      AND (d.next_allowed_at IS NULL OR d.next_allowed_at <= statement_timestamp())
      AND EXISTS (
          SELECT 1 FROM crawling_crawltask t
          WHERE t.domain_id = d.id AND t.status IN ('pending', 'queued')
            AND t.scheduled_at <= statement_timestamp())
    ORDER BY d.next_allowed_at NULLS FIRST
    LIMIT %s
"""
DUE_TASKS = """
    SELECT t.id
    FROM unnest(%s::uuid[], %s::int[]) AS wanted(domain_id, capacity)
    CROSS JOIN LATERAL (
        SELECT c.id FROM crawling_crawltask c
        WHERE c.domain_id = wanted.domain_id AND c.status IN ('pending', 'queued')
          AND c.scheduled_at <= statement_timestamp()
        ORDER BY c.priority, c.depth, c.scheduled_at
        LIMIT wanted.capacity
        FOR UPDATE SKIP LOCKED) t
"""


def has_due_domain() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(DUE_DOMAINS, [1])
        return cursor.fetchone() is not None


def lease_domains(worker: str, limit: int) -> list[Domain]:
    """Take up to ``limit`` domains that have work and belong to nobody."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{DUE_DOMAINS} FOR UPDATE OF d SKIP LOCKED", [limit])
        ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            return []
        mine = Domain.objects.filter(id__in=ids)
        mine.update(leased_by=worker, leased_until=Now() + lease_time())
        return list(mine)


def claim_tasks(wanted: Mapping[uuid.UUID, int]) -> list[Claim]:
    """Claim due tasks of domains the caller holds, most urgent first."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(DUE_TASKS, [list(wanted.keys()), list(wanted.values())])
        ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            return []
        claimed = CrawlTask.objects.filter(id__in=ids)
        advance(
            claimed,
            Status.CRAWLING,
            leased_until=Now() + lease_time(),
            fence=F("fence") + 1,
            claims=F("claims") + 1,
        )
        order = ("priority", "depth", "scheduled_at")
        rows = list(claimed.order_by(*order).values_list(*CLAIM_COLUMNS))
        known = validators.load([row[-1] for row in rows])
        claims = [replace(Claim(*row), known=known.get(row[-1])) for row in rows]
        jobs.start(claim.job_id for claim in claims)
        return claims


def renew(
    worker: str, domain_ids: Sequence[uuid.UUID], task_ids: Sequence[uuid.UUID]
) -> set[uuid.UUID]:
    """Keep what is held; answers the domains that are still the worker's."""
    with transaction.atomic():
        mine = Domain.objects.filter(id__in=domain_ids, leased_by=worker)
        mine.update(leased_until=Now() + lease_time())
        CrawlTask.objects.filter(id__in=task_ids, status=Status.CRAWLING).update(
            leased_until=Now() + lease_time()
        )
        return set(mine.values_list("id", flat=True))


def release_domain(worker: str, domain_id: uuid.UUID, next_allowed_at: dt.datetime | None) -> None:
    Domain.objects.filter(id=domain_id, leased_by=worker).update(
        leased_by="", leased_until=None, next_allowed_at=next_allowed_at
    )


def return_tasks(claims: Iterable[Claim], *, scheduled_at: dt.datetime | None = None) -> None:
    """Give back claims that were not worked on: they count for nothing."""
    by_fence: dict[int, list[uuid.UUID]] = {}
    for claim in claims:
        by_fence.setdefault(claim.fence, []).append(claim.id)
    moved = {} if scheduled_at is None else {"scheduled_at": scheduled_at}
    for fence, ids in by_fence.items():
        mine = CrawlTask.objects.filter(id__in=ids, fence=fence, status=Status.CRAWLING)
        advance(mine, Status.PENDING, leased_until=None, claims=F("claims") - 1, **moved)


def return_expired() -> int:
    """The sweeper: tasks of dead workers run again, poison goes to the dead letters."""
    with transaction.atomic():
        expired = CrawlTask.objects.filter(status=Status.CRAWLING, leased_until__lt=Now())
        locked = list(expired.select_for_update(skip_locked=True).values_list("id", "claims"))
        poison = [task_id for task_id, claims in locked if claims >= MAX_CLAIMS]
        alive = [task_id for task_id, claims in locked if claims < MAX_CLAIMS]
        advance(
            CrawlTask.objects.filter(id__in=alive),
            Status.PENDING,
            leased_until=None,
            fence=F("fence") + 1,
        )
        bury(poison)
        return len(alive)


def bury(task_ids: list[uuid.UUID]) -> None:
    if not task_ids:
        return
    tasks = CrawlTask.objects.filter(id__in=task_ids)
    category = CrawlTask.Category.INTERNAL
    CrawlError.objects.bulk_create(
        CrawlError(
            task_id=task_id,
            domain_id=domain_id,
            category=category,
            message=POISON,
            fingerprint="poison",
            occurred_at=timezone.now(),
        )
        for task_id, domain_id in tasks.values_list("id", "domain_id")
    )
    buried = Counter(tasks.values_list("job_id", flat=True))
    advance(
        tasks,
        Status.FAILED,
        leased_until=None,
        fence=F("fence") + 1,
        error_category=category,
        error_message=POISON,
        completed_at=timezone.now(),
    )
    jobs.count({job: jobs.Tally(processed=n, errors=n) for job, n in buried.items()})


def lease_time() -> dt.timedelta:
    return dt.timedelta(seconds=settings.CRAWL_LEASE_SECONDS)
