"""Work for the crawler, made as its users make it."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.db import connections
from django.utils import timezone

from crawling import frontier, leases
from crawling.fetching import Failure, Page
from crawling.frontier import Target
from crawling.handover import hand_over
from crawling.models import CrawlJob, CrawlTask, Domain, StoredPage
from crawling.slices import run_slice

TRANSIENT = Failure("timeout", "no answer within 30 s", transient=True)
PERMANENT = Failure("http", "the shop answered 404", transient=False)


def accept_all(pages: Sequence[Page]) -> object:
    return lambda accepted: {}


def job_with(*urls: str, client_id: uuid.UUID | None = None) -> CrawlJob:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=client_id)
    assert job is not None
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    return job


def tasks_of(job: CrawlJob) -> list[CrawlTask]:
    return list(CrawlTask.objects.filter(job=job).order_by("url"))


def claim_all(count: int = 100) -> list[leases.Claim]:
    return leases.claim_tasks(dict.fromkeys(Domain.objects.values_list("id", flat=True), count))


def finish(claim: leases.Claim, failure: Failure | None = None) -> int:
    page = Page(claim, timezone.now(), failure, status=200, url=claim.url, body=b"x")
    return hand_over([page])


def failed_job(*urls: str, client_id: uuid.UUID | None = None) -> CrawlJob:
    """A job that is over, each of its pages in the dead letters."""
    job = job_with(*urls, client_id=client_id)
    for claim in claim_all():
        finish(claim, PERMANENT)
    job.refresh_from_db()
    return job


def expire_all() -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    CrawlTask.objects.filter(leased_until__isnull=False).update(leased_until=past)


def stored_page() -> StoredPage:
    now, digest = timezone.now(), uuid.uuid4().hex
    return StoredPage.objects.create(
        content_hash=digest,
        storage_key=digest,
        size=1,
        compressed_size=1,
        first_seen_at=now,
        last_seen_at=now,
    )


@contextmanager
def running_slice(seconds: float) -> Iterator[None]:
    """A slice of another worker; it has ended when this has."""

    def crawl() -> None:
        try:
            run_slice(seconds)
        finally:
            connections.close_all()

    thread = threading.Thread(target=crawl)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        assert not thread.is_alive()


def wait_for(what: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
