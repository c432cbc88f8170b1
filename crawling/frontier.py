"""URLs join the frontier: normalised, deduplicated, one row each."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from common.requests import current_request_id
from common.urls import host_of, normalize_url, origin_of, url_hash
from common.wakeups import wake_on_commit
from crawling.models import CrawlJob, CrawlTask, Domain

CRAWL = "crawling.tasks.crawl_slice"
PARSE = "crawling.tasks.parse_slice"
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """One URL somebody wants, and what it is to them."""

    url: str
    object_id: uuid.UUID | None = None
    depth: int = 0
    parent_id: uuid.UUID | None = None
    # Best first, among tasks of the same priority.
    score: float = 0


def hold_websites(website_ids: Iterable[uuid.UUID]) -> None:
    """Until the transaction ends: whoever writes pages of a website, or asks for them
    while holding the website's row, takes this first. Jobs, tasks, websites, products
    and feeds follow, in this order; without it the two would wait for each other."""
    keys = sorted({int.from_bytes(key.bytes[8:], signed=True) for key in website_ids})
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(k) FROM unnest(%s::bigint[]) AS k", [keys])


def open_job(
    *,
    kind: str,
    triggered_by: str,
    client_id: uuid.UUID | None,
    website_id: uuid.UUID | None = None,
    slot_at: dt.datetime | None = None,
    priority: int = 5,
    profile_id: uuid.UUID | None = None,
    parameters: dict[str, Any] | None = None,
) -> CrawlJob | None:
    """A new job, or None when this slot already has one."""
    job = CrawlJob(
        kind=kind,
        triggered_by=triggered_by,
        client_id=client_id,
        website_id=website_id,
        slot_at=slot_at,
        priority=priority,
        profile_id=profile_id,
        parameters=parameters or {},
        request_id=current_request_id(),
    )
    CrawlJob.objects.bulk_create([job], ignore_conflicts=slot_at is not None)
    taken = slot_at is not None and not CrawlJob.objects.filter(pk=job.pk).exists()
    return None if taken else job


@transaction.atomic
def submit(
    job: CrawlJob,
    *,
    purpose: str,
    targets: Sequence[Target],
    not_before: dt.datetime | None = None,
) -> int:
    """Add URLs to a job; answers how many joined. A URL that already waits for the same
    purpose is not asked for twice."""
    tasks = list(_tasks(job, purpose, targets, not_before or timezone.now()))
    CrawlTask.objects.bulk_create(tasks, ignore_conflicts=True, batch_size=BATCH)
    total = CrawlTask.objects.filter(job=job).count()
    added, job.total = total - job.total, total
    CrawlJob.objects.filter(pk=job.pk).update(total=total)
    wake_on_commit(CRAWL)
    return added


def _tasks(
    job: CrawlJob, purpose: str, targets: Sequence[Target], due_at: dt.datetime
) -> Iterable[CrawlTask]:
    domains = ensure_domains(target.url for target in targets)
    moments = _moments(job, due_at)
    seen: set[str] = set()
    for target in targets:
        normalized = normalize_url(target.url)
        digest = url_hash(normalized)
        if digest in seen:
            continue
        seen.add(digest)
        yield CrawlTask(
            job=job,
            domain_id=domains[host_of(target.url)],
            client_id=job.client_id,
            website_id=job.website_id,
            object_id=target.object_id,
            purpose=purpose,
            url=target.url,
            normalized_url=normalized,
            url_hash=digest,
            priority=job.priority,
            scheduled_at=next(moments),
            max_retries=settings.CRAWL_MAX_RETRIES,
            depth=target.depth,
            score=target.score,
            parent_id=target.parent_id,
        )


def _moments(job: CrawlJob, due_at: dt.datetime) -> Iterator[dt.datetime]:
    """When each further page of the job is due: at once, or spread out to the rate of its
    profile. So a slow job slows nobody else at the same shop."""
    rate = job.profile and job.profile.rate_limit_rps
    if not rate:
        yield from itertools.repeat(due_at)
        return
    gap = dt.timedelta(seconds=1 / rate)
    last = CrawlTask.objects.filter(job=job).aggregate(at=Max("scheduled_at"))["at"]
    first = due_at if last is None else max(due_at, last + gap)
    yield from (first + number * gap for number in itertools.count())


def ensure_domains(urls: Iterable[str]) -> dict[str, uuid.UUID]:
    """The domain rows of these URLs by host, made where they are missing."""
    origins = {host_of(url): origin_of(url) for url in urls}
    known = _domain_ids(origins)
    missing = sorted(origins.keys() - known.keys())
    if missing:
        Domain.objects.bulk_create(
            [
                Domain(
                    host=host,
                    base_url=origins[host],
                    crawl_delay_seconds=settings.CRAWL_DEFAULT_DELAY_SECONDS,
                    max_concurrent_requests=settings.CRAWL_DEFAULT_CONCURRENCY,
                )
                for host in missing
            ],
            ignore_conflicts=True,
        )
        known = _domain_ids(origins)
    return known


def _domain_ids(hosts: Iterable[str]) -> dict[str, uuid.UUID]:
    return dict(Domain.objects.filter(host__in=list(hosts)).values_list("host", "id"))
