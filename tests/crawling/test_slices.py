"""Slices over a real shop on loopback."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from common.retry_after import retry_after_seconds
from crawling import frontier
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.models import CrawlJob, CrawlTask, Domain
from crawling.slices import run_slice
from tests.shop.server import Robots, ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]

seen: list[Page] = []


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    seen.clear()
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_slices.remember"}
    settings.JOB_CONSUMERS = {}


def remember(pages: Sequence[Page]) -> object:
    seen.extend(pages)
    return lambda accepted: {}


def crawl(*urls: str, seconds: float = 10) -> CrawlJob:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    run_slice(seconds)
    job.refresh_from_db()
    return job


def task_of(url: str) -> CrawlTask:
    return CrawlTask.objects.get(url=url)


def test_pages_are_fetched_and_handed_over(shop: ScriptedShop) -> None:
    job = crawl(*shop.product_urls)
    assert job.status == "success"
    assert sorted(page.url for page in seen) == sorted(shop.product_urls)
    assert Domain.objects.get().leased_by == ""


def test_gap_and_concurrency_of_a_shop_are_kept(shop: ScriptedShop, settings: Settings) -> None:
    settings.CRAWL_DEFAULT_DELAY_SECONDS = 0.2
    crawl(*shop.product_urls[:6])
    assert len(shop.log) >= 7
    assert min(shop.gaps()) >= 0.12
    assert sum(shop.gaps()) >= 6 * 0.2 - 0.05
    assert shop.max_concurrent <= 2


def test_the_crawl_delay_of_robots_is_kept(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "User-agent: *\nCrawl-delay: 0.3\n")
    crawl(*shop.product_urls[:4])
    pages = shop.gaps()
    # Measured at the shop: one late arrival makes the next gap look short.
    assert min(pages) >= 0.2
    assert sum(pages) >= 4 * 0.3 - 0.05


def test_what_robots_forbids_is_not_fetched(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "User-agent: *\nDisallow: /\n")
    job = crawl(shop.product_urls[0])
    assert (job.status, task_of(shop.product_urls[0]).error_category) == ("failed", "robots")
    assert {entry.path for entry in shop.log} == {"/robots.txt"}


def test_a_robots_file_that_does_not_answer_defers_and_fails_nothing(shop: ScriptedShop) -> None:
    shop.robots = Robots(500, "")
    crawl(shop.product_urls[0], seconds=3)
    domain = Domain.objects.get()
    assert task_of(shop.product_urls[0]).status == "pending"
    assert "robots.txt" in CrawlJob.objects.get().error_summary
    assert domain.next_allowed_at is not None
    assert domain.next_allowed_at > timezone.now() + dt.timedelta(minutes=4)
    assert {entry.path for entry in shop.log} == {"/robots.txt"}


def test_a_missing_robots_file_allows(shop: ScriptedShop) -> None:
    shop.robots = Robots(404, "")
    assert crawl(shop.product_urls[0]).status == "success"


def test_an_operator_may_switch_robots_off(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "User-agent: *\nDisallow: /\n")
    frontier.ensure_domains([shop.url])
    Domain.objects.update(respect_robots=False)
    assert crawl(shop.product_urls[0]).status == "success"


def test_retry_after_rests_the_host_and_the_page_is_tried_again(shop: ScriptedShop) -> None:
    url = f"{shop.url.rstrip('/')}/429?retry_after=120"
    crawl(url, seconds=3)
    task, domain = task_of(url), Domain.objects.get()
    assert (task.status, task.retry_count, task.http_status) == ("pending", 1, 429)
    assert domain.next_allowed_at is not None
    wait = (domain.next_allowed_at - timezone.now()).total_seconds()
    assert 100 < wait <= 121


@pytest.mark.parametrize(
    ("path", "status", "category"),
    [
        ("/status/404", "failed", "http"),
        ("/status/500", "pending", "http"),
        ("/redirect-loop", "failed", "http"),
        ("/reset", "pending", "network"),
    ],
)
def test_failures_are_told_apart(shop: ScriptedShop, path: str, status: str, category: str) -> None:
    url = shop.url.rstrip("/") + path
    crawl(url, seconds=3)
    task = task_of(url)
    assert (task.status, task.error_category) == (status, category)


def test_the_breaker_opens_after_a_row_of_transport_failures(shop: ScriptedShop) -> None:
    urls = [f"{shop.url.rstrip('/')}/status/500?n={n}" for n in range(40)]
    frontier.ensure_domains(urls)
    Domain.objects.update(breaker_threshold=2)
    crawl(*urls, seconds=3)
    domain = Domain.objects.get()
    assert domain.breaker_state == "open"
    assert domain.next_allowed_at is not None
    assert domain.next_allowed_at > timezone.now()
    assert CrawlTask.objects.filter(retry_count=0, status="pending").exists()


def test_a_redirect_to_another_site_is_not_followed(shop: ScriptedShop) -> None:
    with ScriptedShop() as other:
        url = f"{shop.url}/redirect-to?url={other.product_urls[0]}"
        crawl(url, seconds=3)
        assert (task_of(url).status, task_of(url).error_category) == ("failed", "http")
        assert other.log == []


def test_a_page_that_breaks_its_reader_spoils_no_other(
    shop: ScriptedShop, settings: Settings
) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_slices.choke"}
    settings.CRAWL_BATCH_PAGES = 4
    job = crawl(*shop.product_urls)
    assert (job.status, job.errors) == ("partial_success", 1)
    failed = CrawlTask.objects.get(status="failed")
    assert "RecursionError" in failed.error_log.get().trace
    assert failed.error_message == "the page could not be stored"


def choke(pages: Sequence[Page]) -> object:
    if any("desk-lamp" in page.url for page in pages):
        raise RecursionError("too deep")
    return lambda accepted: {}


def test_a_slice_ends_soon_after_its_only_shop_asked_for_quiet(shop: ScriptedShop) -> None:
    started = time.monotonic()
    crawl(*(f"{shop.url}/429?retry_after=120&n={n}" for n in range(5)), seconds=20)
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("text", ["²", "9" * 5000, "soon", ""])
def test_a_retry_after_that_makes_no_sense_is_survived(text: str) -> None:
    assert retry_after_seconds(text, now=timezone.now()) in (None, 86_400)


def test_a_page_of_another_job_is_picked_up_while_the_slice_runs(shop: ScriptedShop) -> None:
    crawl(shop.product_urls[0])
    crawl(shop.product_urls[1])
    assert len(seen) == 2
    assert not connections["default"].in_atomic_block
