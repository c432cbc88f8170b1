"""Pause and cancel reach tasks that a running slice holds, within a second."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import Max
from django.utils import timezone
from pytest_django import Settings

from crawling import control, job_control
from crawling.models import CrawlTask, LedgerEntry
from tests.crawling.work import job_with, running_slice, tasks_of, wait_for
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}
    settings.CRAWL_DEFAULT_CONCURRENCY = 1


@pytest.mark.parametrize("act", [control.pause, control.cancel])
def test_a_page_in_flight_is_let_go_and_the_next_one_fetched(
    shop: ScriptedShop, act: object
) -> None:
    assert callable(act)
    slow = f"{shop.url.rstrip('/')}/slow?seconds=20"
    job = job_with(slow, shop.product_urls[0])
    CrawlTask.objects.filter(url=slow).update(priority=1)
    # The slow page outlasts the slice: the next one comes only if it is let go.
    with running_slice(12):
        wait_for(lambda: shop.requests["/slow"])
        task = CrawlTask.objects.get(url=slow)
        act(task)
        wait_for(lambda: any("/products/" in path for path in shop.requests))
    task.refresh_from_db()
    assert task.status == ("paused" if act is control.pause else "cancelled")
    other = CrawlTask.objects.get(job=job, url=shop.product_urls[0])
    assert other.status == "completed"


def test_a_paused_job_is_asked_for_no_more_pages_after_a_second(
    shop: ScriptedShop, settings: Settings
) -> None:
    settings.CRAWL_DEFAULT_DELAY_SECONDS = 0.1
    urls = [f"{shop.url.rstrip('/')}/status/404?n={n}" for n in range(100)]
    job = job_with(*urls)
    with running_slice(9):
        wait_for(lambda: len(shop.log) > 3)
        job_control.pause_job(job)
        paused_at = timezone.now()
    last = LedgerEntry.objects.aggregate(at=Max("started_at"))["at"]
    # A slow machine's second; the pages would have lasted for ten.
    assert last < paused_at + dt.timedelta(seconds=4)
    job.refresh_from_db()
    assert job.status == "paused"
    states = [task.status for task in tasks_of(job)]
    assert set(states) == {"paused", "failed"}
    assert states.count("failed") == job.processed == job.errors
