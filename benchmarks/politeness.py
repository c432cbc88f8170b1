"""Two hundred shops at one request a second each, from one process: is every gap kept?"""

from __future__ import annotations

import time

from django.conf import settings
from django.db.models import F

from benchmarks.figures import Figure, figure
from crawling import frontier, ledger
from crawling.frontier import Target
from crawling.models import CrawlTask, Domain, LedgerEntry
from crawling.slices import run_slice
from tests.shop.bulk import BulkShop

HOSTS = 200
RATE = 1.0
PURPOSE = "politeness"


def measure(*, quick: bool) -> list[Figure]:
    seconds = 10 if quick else 20
    with BulkShop(products=HOSTS * (seconds + 5), hosts=HOSTS, addresses=True) as shop:
        prepare(shop)
        cpu = time.process_time()
        run_slice(seconds)
        cpu = (time.process_time() - cpu) / seconds
    late = F("gap_seconds") - F("wanted_gap_seconds")
    entries = LedgerEntry.objects.filter(gap_seconds__isnull=False)
    kept = [float(one) for one in entries.annotate(late=late).values_list("late", flat=True)]
    broken = sum(len(ledger.broken_gaps(domain)) for domain in Domain.objects.all())
    rates = [rate_of(domain) for domain in Domain.objects.all()]
    check(rates, broken)
    return [
        figure("requests per host", rates, "1/s", peer="1 a second", against=RATE),
        figure("hosts served", [len(rates)], "hosts", peer=f"goal {HOSTS}", against=HOSTS),
        figure("later than the gap asks", [k * 1000 for k in kept], "ms", peer="0", against=0),
        figure("gaps broken", [broken], "gaps", peer=f"of {len(kept)}", against=len(kept)),
        figure("CPU of the process", [cpu], "cores", peer="1 core", against=1.0),
    ]


def prepare(shop: BulkShop) -> None:
    settings.PAGE_CONSUMERS = {PURPOSE: f"{__name__}.ignore"}
    settings.JOB_CONSUMERS = {}
    settings.CRAWL_SLICE_DOMAINS = HOSTS
    CrawlTask.objects.all().delete()
    Domain.objects.all().delete()
    frontier.ensure_domains(shop.urls)
    Domain.objects.update(crawl_delay_seconds=1 / RATE, max_concurrent_requests=2)
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    frontier.submit(job, purpose=PURPOSE, targets=[Target(url=url) for url in shop.urls])


def ignore(pages: object) -> object:
    return lambda accepted: {}


def rate_of(domain: Domain) -> float:
    """Requests a second from the first to the last: n of them span n - 1 gaps."""
    starts = list(domain.ledger.order_by("started_at").values_list("started_at", flat=True))
    return (len(starts) - 1) / (starts[-1] - starts[0]).total_seconds()


def check(rates: list[float], broken: int) -> None:
    """A figure counts only if the work was done."""
    assert broken == 0, f"{broken} gaps were broken"
    assert len(rates) == HOSTS, f"only {len(rates)} hosts were asked"
