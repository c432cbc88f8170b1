"""Crawl profiles at work, as a real shop on loopback sees them."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from crawling import frontier, recurrence
from crawling.frontier import Target
from crawling.models import CrawlJob, CrawlTask, PageValidator
from crawling.slices import run_slice
from tests.factories.crawling import ProfileFactory
from tests.shop.server import Robots, ScriptedShop

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback", "page_files"),
]


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


def queue(*urls: str, **options: Any) -> CrawlJob:
    profile = ProfileFactory.create(**options)
    job = frontier.open_job(
        kind="urls", triggered_by="manual", client_id=None, profile_id=profile.pk
    )
    assert job is not None
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    return job


def crawl(url: str, **options: Any) -> CrawlTask:
    job = queue(url, **options)
    run_slice(5)
    return CrawlTask.objects.get(job=job)


def test_the_headers_of_a_profile_are_sent_beside_our_name(shop: ScriptedShop) -> None:
    crawl(f"{shop.url}/products/desk-lamp", headers={"Accept-Language": "de-AT"})
    asked = shop.log[-1]
    assert asked.headers["Accept-Language"] == "de-AT"
    assert "Obsrv" in asked.user_agent


def test_a_page_that_was_asked_for_with_own_headers_is_nobody_elses(shop: ScriptedShop) -> None:
    url = f"{shop.url}/products/desk-lamp"
    crawl(url, headers={"Cookie": "currency=CHF"})
    assert not PageValidator.objects.exists()
    crawl(url)
    assert PageValidator.objects.count() == 1
    crawl(url, headers={"Cookie": "currency=CHF"})
    assert "If-None-Match" not in shop.log[-1].headers


def test_a_slow_page_is_given_up_when_the_profile_says(shop: ScriptedShop) -> None:
    task = crawl(f"{shop.url}/slow?seconds=20", timeout_seconds=1)
    assert task.error_category == "timeout"


def test_a_page_larger_than_the_profile_allows_is_refused(shop: ScriptedShop) -> None:
    task = crawl(f"{shop.url}/too-big?mib=1", max_page_bytes=100_000)
    assert (task.status, task.error_category) == ("failed", "too_large")


def test_redirects_are_followed_as_far_as_the_profile_says(shop: ScriptedShop) -> None:
    assert crawl(f"{shop.url}/redirect-chain?hops=1", max_redirects=1).status == "completed"
    assert crawl(f"{shop.url}/redirect-chain?hops=2", max_redirects=1).status == "failed"


def test_robots_are_passed_over_where_the_profile_of_the_operator_says(shop: ScriptedShop) -> None:
    shop.robots = Robots(body="User-agent: *\nDisallow: /\n")
    url = f"{shop.url}/products/desk-lamp"
    assert crawl(url, respect_robots=False).status == "completed"
    assert crawl(url).error_category == "robots"


def test_the_rate_of_a_profile_spreads_its_pages_out(shop: ScriptedShop) -> None:
    job = queue(*(f"{shop.url}/p/{n}" for n in range(3)), rate_limit_rps=0.5)
    frontier.submit(job, purpose="test", targets=[Target(url=f"{shop.url}/p/late")])
    due = CrawlTask.objects.order_by("scheduled_at").values_list("scheduled_at", flat=True)
    assert [later - earlier for earlier, later in pairwise(due)] == [dt.timedelta(seconds=2)] * 3
    assert due[0] <= timezone.now()


def test_a_recurring_url_keeps_its_profile(shop: ScriptedShop) -> None:
    url, profile = f"{shop.url}/products/desk-lamp", ProfileFactory.create()
    task = recurrence.add_recurring(url, purpose="test", frequency_seconds=60, profile=profile)
    run_slice(5)
    CrawlTask.objects.filter(pk=task.pk).update(next_crawl_at=timezone.now())
    recurrence.queue_due()
    assert list(CrawlJob.objects.values_list("profile", flat=True)) == [profile.pk] * 2
