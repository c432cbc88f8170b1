"""How long a worker waits for its work: leasing due domains and claiming their tasks while
100,000 tasks of 1,000 domains are due."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Sequence

from django.conf import settings
from django.db import connection
from django.utils import timezone

from benchmarks.figures import Figure, figure
from common.urls import url_hash
from crawling import leases
from crawling.models import CrawlJob, CrawlTask, Domain

DOMAINS = 1000
# What issue 3 asks of this machine.
GOAL_MS = 20.0
# What a visit at the default pace claims for one slice.
CAPACITY = 32
WORKER = "bench"


def measure(*, quick: bool) -> list[Figure]:
    per_domain, rounds, claims = (20, 5, 60) if quick else (100, 7, 200)
    fill(per_domain)
    leased: list[list[float]] = []
    claimed: list[list[float]] = []
    for _ in range(rounds):
        lease_times, claim_times = one_round(claims)
        leased.append(lease_times)
        claimed.append(claim_times)
    size = f"{DOMAINS * per_domain:,} due"
    peer = f"goal {GOAL_MS:g} ms"
    slice_size = settings.CRAWL_SLICE_DOMAINS
    figures = (
        (f"p99 of leasing 1 domain and claiming {CAPACITY} tasks, {size}", leased),
        (f"p99 of claiming {CAPACITY} tasks of each of {slice_size} domains, {size}", claimed),
    )
    return [
        figure(name, [p99(times) for times in rounds_], "ms", peer=peer, against=GOAL_MS)
        for name, rounds_ in figures
    ]


def one_round(claims: int) -> tuple[list[float], list[float]]:
    """Times in milliseconds; the tasks are due again afterwards."""
    singles = [timed_single() for _ in range(claims)]
    Domain.objects.update(leased_by="", leased_until=None)
    domains = leases.lease_domains(WORKER, settings.CRAWL_SLICE_DOMAINS)
    assert len(domains) == settings.CRAWL_SLICE_DOMAINS
    many = [timed_claim(domain.pk) for domain in domains]
    CrawlTask.objects.filter(status="crawling").update(
        status="pending", leased_until=None, claims=0
    )
    Domain.objects.update(leased_by="", leased_until=None)
    tidy()
    return singles, many


def timed_single() -> float:
    started = time.perf_counter()
    (domain,) = leases.lease_domains(WORKER, 1)
    assert len(leases.claim_tasks({domain.pk: CAPACITY})) > 0
    return (time.perf_counter() - started) * 1000


def timed_claim(domain_id: uuid.UUID) -> float:
    started = time.perf_counter()
    leases.claim_tasks({domain_id: CAPACITY})
    return (time.perf_counter() - started) * 1000


def p99(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def fill(per_domain: int) -> None:
    with connection.cursor() as cursor:
        # The bench has a server of its own: work another bench left would be leased too.
        cursor.execute("TRUNCATE crawling_domain CASCADE")
    now = timezone.now()
    job = CrawlJob.objects.create(kind="urls", triggered_by="manual", total=DOMAINS * per_domain)
    domains = Domain.objects.bulk_create(
        Domain(host=f"s{n}.example", base_url=f"https://s{n}.example") for n in range(DOMAINS)
    )
    urls = ((d, f"https://{d.host}/p/{n}") for n in range(per_domain) for d in domains)
    CrawlTask.objects.bulk_create(
        (
            CrawlTask(
                job=job,
                domain=domain,
                purpose="product",
                url=url,
                normalized_url=url,
                url_hash=url_hash(url),
                scheduled_at=now,
            )
            for domain, url in urls
        ),
        batch_size=2000,
    )
    tidy()


def tidy() -> None:
    """As autovacuum would; each round starts from the same state."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE crawling_crawltask")
        cursor.execute("VACUUM ANALYZE crawling_domain")
