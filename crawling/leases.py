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
from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from crawling import jobs, options, validators
from crawling.models import CrawlError, CrawlTask, Domain
from crawling.options import STANDARD, Options
from crawling.states import Status, advance, as_json, claim_due
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
    # Workers that died while they held it: the next one counts only once it is begun. Not
    # a column, as what follows.
    deaths: int = 0
    # What is known of the page since the last look.
    known: Validator | None = None
    options: Options = STANDARD


CLAIM_COLUMNS = tuple(field.name for field in fields(Claim))[:-3]
JOB_ID, URL_HASH = (CLAIM_COLUMNS.index(name) for name in ("job_id", "url_hash"))

# In the order of the index and one probe each: with few wanted it ends early, however
# many tasks are due.
DUE_DOMAINS = """
    SELECT d.id FROM crawling_domain d
    CROSS JOIN LATERAL (
        SELECT 1 FROM crawling_crawltask t
        WHERE t.domain_id = d.id AND t.status IN ('pending', 'queued')
          AND t.scheduled_at <= statement_timestamp()
        LIMIT 1) due
    WHERE d.is_active AND NOT d.is_blocked
      AND (d.leased_until IS NULL OR d.leased_until < statement_timestamp())
      AND (d.next_allowed_at IS NULL OR d.next_allowed_at <= statement_timestamp())
    ORDER BY d.next_allowed_at NULLS FIRST
    LIMIT %s
"""
LEASE_DOMAINS = f"""
    WITH free AS MATERIALIZED ({DUE_DOMAINS} FOR UPDATE OF d SKIP LOCKED)
    UPDATE crawling_domain d
    SET leased_by = %s, leased_until = statement_timestamp() + %s
    FROM free WHERE d.id = free.id
    RETURNING d.*
"""  # noqa: S608
# The others are many, and hardly ever lost.
LOST = """
    SELECT v.id FROM json_to_recordset(%s::json) AS v(id uuid, fence int)
    WHERE NOT EXISTS (
        SELECT FROM crawling_crawltask t
        WHERE t.id = v.id AND t.fence = v.fence AND t.status = 'crawling')
"""


def has_due_domain() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(DUE_DOMAINS, [1])
        return cursor.fetchone() is not None


def lease_domains(worker: str, limit: int) -> list[Domain]:
    """Take up to ``limit`` domains that have work and belong to nobody."""
    return list(Domain.objects.raw(LEASE_DOMAINS, [limit, worker, lease_time()]))


def lease_domain(worker: str, domain_id: uuid.UUID, *, seconds: float = 0) -> Domain | None:
    """Take one domain, if it belongs to nobody and may be asked now; for so many seconds,
    where it will not be renewed and the usual lease may be too short."""
    free = Q(leased_until=None) | Q(leased_until__lt=Now())
    rested = Q(next_allowed_at=None) | Q(next_allowed_at__lte=Now())
    mine = Domain.objects.filter(free, rested, id=domain_id, is_blocked=False)
    length = max(lease_time(), dt.timedelta(seconds=seconds))
    if not mine.update(leased_by=worker, leased_until=Now() + length):
        return None
    return Domain.objects.get(id=domain_id)


def claim_tasks(wanted: Mapping[uuid.UUID, int]) -> list[Claim]:
    """Claim due tasks of domains the caller holds, most urgent first."""
    rows = claim_due(wanted, (*CLAIM_COLUMNS, "deaths"), lease=lease_time())
    if not rows:
        return []
    chosen = options.of_jobs(row[JOB_ID] for row in rows)
    known = validators.load([row[URL_HASH] for row in rows])
    claims = [_claim(row, known, chosen.get(row[JOB_ID], STANDARD)) for row in rows]
    # Jobs are locked before tasks everywhere: so not while these are locked.
    jobs.start(claim.job_id for claim in claims)
    return claims


def _claim(row: Sequence[Any], known: Mapping[str, Validator], chosen: Options) -> Claim:
    """What others saw does not count for a page that is asked for in its own way."""
    validator = None if chosen.personal else known.get(row[URL_HASH])
    return Claim(*(*row, validator, chosen))


RENEW = """
    UPDATE crawling_crawltask SET leased_until = statement_timestamp() + make_interval(secs => %s)
    WHERE id IN (
        SELECT t.id FROM crawling_crawltask t
        JOIN json_to_recordset(%s::json) AS v(id uuid, fence int)
            ON t.id = v.id AND t.fence = v.fence
        WHERE t.status = 'crawling' FOR UPDATE OF t SKIP LOCKED)
"""


def renew(worker: str, domain_ids: Sequence[uuid.UUID], claims: Sequence[Claim]) -> set[uuid.UUID]:
    """Keep what is held; answers the domains that are still the worker's."""
    mine = _held(worker, domain_ids)
    mine.update(leased_until=Now() + lease_time())
    with connection.cursor() as cursor:
        # One that is locked is being written or returned right now: no need to keep it.
        cursor.execute(RENEW, [settings.CRAWL_LEASE_SECONDS, as_json(claims)])
    return set(mine.values_list("id", flat=True))


def lost(claims: Iterable[Claim]) -> set[uuid.UUID]:
    """Those whose claim counts no longer: paused, cancelled, or another's by now."""
    with connection.cursor() as cursor:
        cursor.execute(LOST, [as_json(claims)])
        return {row[0] for row in cursor.fetchall()}


def held(worker: str, domain_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """The domains that the worker may still ask: not lost, not blocked, not switched off."""
    return set(_held(worker, domain_ids).values_list("id", flat=True))


def _held(worker: str, domain_ids: Sequence[uuid.UUID]) -> QuerySet[Domain]:
    return Domain.objects.filter(
        id__in=domain_ids, leased_by=worker, is_active=True, is_blocked=False
    )


def release_domain(
    worker: str, domain_id: uuid.UUID, next_allowed_at: dt.datetime | None, **learned: Any
) -> bool:
    """Unless the lease was lost: then the domain is another worker's to describe."""
    mine = Domain.objects.filter(id=domain_id, leased_by=worker)
    return bool(
        mine.update(leased_by="", leased_until=None, next_allowed_at=next_allowed_at, **learned)
    )


def begin(claim: Claim) -> None:
    """Count a further try of a page whose workers died. Those that only waited beside it
    when a worker died are not what killed it."""
    mine = CrawlTask.objects.filter(id=claim.id, fence=claim.fence, status=Status.CRAWLING)
    mine.update(claims=claim.deaths + 1)


def return_tasks(claims: Iterable[Claim], *, scheduled_at: dt.datetime | None = None) -> None:
    """Give back claims that were not worked on: they count for nothing."""
    alike: dict[tuple[int, int], list[uuid.UUID]] = {}
    for claim in claims:
        alike.setdefault((claim.fence, claim.deaths), []).append(claim.id)
    moved = {} if scheduled_at is None else {"scheduled_at": scheduled_at}
    for (fence, deaths), ids in alike.items():
        mine = CrawlTask.objects.filter(id__in=ids, fence=fence, status=Status.CRAWLING)
        advance(mine, Status.PENDING, leased_until=None, claims=deaths, **moved)


def return_expired() -> int:
    """The sweeper: tasks of dead workers run again, poison goes to the dead letters."""
    with transaction.atomic():
        leased = (Status.CRAWLING, Status.PARSING)
        expired = CrawlTask.objects.filter(status__in=leased, leased_until__lt=Now())
        doomed = set(expired.filter(claims__gte=MAX_CLAIMS).values_list("id", "job_id"))
        jobs.lock(job_id for _, job_id in doomed)
        locked = list(expired.select_for_update(skip_locked=True).values_list("id", "claims"))
        held = {task_id for task_id, _ in doomed}
        poison = [task_id for task_id, _ in locked if task_id in held]
        alive = [task_id for task_id, claims in locked if claims < MAX_CLAIMS]
        _return(alive)
        _bury(poison)
        return len(alive)


def _return(task_ids: list[uuid.UUID]) -> None:
    """To where each was taken from: a page that is kept need not be fetched again."""
    tasks = CrawlTask.objects.filter(id__in=task_ids)
    parsing = tasks.filter(status=Status.PARSING, stored_page__isnull=False)
    freed: dict[str, Any] = {"leased_until": None, "fence": F("fence") + 1}
    advance(parsing, Status.QUEUED_PARSE, **freed)
    advance(tasks.exclude(status=Status.QUEUED_PARSE), Status.PENDING, **freed)


def _bury(task_ids: list[uuid.UUID]) -> None:
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
