"""Claims of stored pages beside people who act on their jobs."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from django.db import connection, connections, transaction

from crawling import frontier, jobs, parsing
from crawling.models import CrawlJob, CrawlTask
from crawling.parsing import StoredLook
from tests.crawling.work import stored_page

pytestmark = pytest.mark.django_db(transaction=True)
WAITERS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def reading_job() -> CrawlJob:
    page, url = stored_page(), "https://a.example/1"
    job = frontier.open_job(kind="reparse", triggered_by="manual", client_id=None)
    assert job is not None
    look = StoredLook(url, url, uuid.uuid4(), page.pk, page.first_seen_at)
    parsing.submit_stored(job, purpose="product", looks=[look])
    return job


def claim_in_a_thread() -> threading.Thread:
    def claim() -> None:
        try:
            parsing.claim(10)
        finally:
            connections.close_all()

    thread = threading.Thread(target=claim)
    thread.start()
    return thread


def wait_until_somebody_waits() -> None:
    deadline = time.monotonic() + 30
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute(WAITERS)
            if cursor.fetchone()[0]:
                return
            time.sleep(0.02)
    pytest.fail("the claim never asked for the job")


def test_a_claim_that_waits_for_its_job_holds_no_task_of_it() -> None:
    job = reading_job()
    with transaction.atomic():
        jobs.lock([job.pk])
        claiming = claim_in_a_thread()
        try:
            wait_until_somebody_waits()
            tasks = CrawlTask.objects.filter(job=job).select_for_update(skip_locked=True)
            free = len(tasks)
        finally:
            transaction.set_rollback(True)
    claiming.join(30)
    assert not claiming.is_alive()
    assert free == 1
    job.refresh_from_db()
    assert job.status == "running"
