from __future__ import annotations

import json
from typing import Any

import pytest

from crawling.models import CrawlJob
from monitoring import health
from monitoring.models import Website
from notifications.models import Event
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db


def run_of(website: Website, *, read: int, unread: int = 0, status: str = "success") -> CrawlJob:
    """A run that is over, with so many pages read and not readable."""
    job = JobFactory.create(client=website.client, website_id=website.pk, status=status)
    TaskFactory.create_batch(read, job=job, status="completed")
    TaskFactory.create_batch(unread, job=job, status="failed", error_category="parse")
    health.finish_run(job)
    return job


def events(kind: str) -> list[dict[str, Any]]:
    return [json.loads(e.body)["data"]["object"] for e in Event.objects.filter(type=kind)]


def test_three_failed_runs_stop_a_website_and_a_good_probe_brings_it_back() -> None:
    website = WebsiteFactory.create(active=True)
    ProductFactory.create_batch(5, website=website, approved=True)
    for _ in range(3):
        run_of(website, read=0, unread=1, status="failed")
    website = Website.objects.get(pk=website.pk)
    assert (website.status, website.consecutive_failures) == ("failed", 3)
    assert website.periodic_task
    assert not website.periodic_task.enabled
    assert len(events("website.failed")) == 1

    assert health.probe_failed() == 1
    probe = CrawlJob.objects.get(parameters__probe=True)
    assert (probe.total, probe.triggered_by) == (3, "retry")
    # Nothing twice while a probe is under way.
    assert health.probe_failed() == 0

    CrawlJob.objects.filter(pk=probe.pk).update(status="success")
    probe.refresh_from_db()
    health.finish_run(probe)
    website = Website.objects.get(pk=website.pk)
    assert (website.status, website.consecutive_failures) == ("active", 0)
    assert website.periodic_task
    assert website.periodic_task.enabled
    assert len(events("website.activated")) == 1


def test_a_probe_that_fails_leaves_the_website_failed_and_silent() -> None:
    website = WebsiteFactory.create(failed=True)
    run_of(website, read=0, unread=1, status="failed")
    website.refresh_from_db()
    assert website.status == "failed"
    assert events("website.failed") == []


def test_a_host_that_can_be_read_less_than_usual_is_told_once_to_all_who_watch_it() -> None:
    mine = WebsiteFactory.create(active=True, base_url="https://shop.example/")
    WebsiteFactory.create(active=True, base_url="https://shop.example/de")
    WebsiteFactory.create(active=True, base_url="https://shop.example.org/")
    run_of(mine, read=10)
    run_of(mine, read=4, unread=6)
    run_of(mine, read=4, unread=6)
    told = events("parser.success_rate_dropped")
    assert len(told) == 2
    assert {(one["host"], one["success_pct"], one["usual_pct"]) for one in told} == {
        ("shop.example", 40.0, 100.0)
    }
    # Readable again, and broken again: that is news.
    run_of(mine, read=10)
    run_of(mine, read=0, unread=10)
    assert len(events("parser.success_rate_dropped")) == 4


def test_a_few_pages_say_nothing_about_a_parser() -> None:
    website = WebsiteFactory.create(active=True)
    run_of(website, read=10)
    run_of(website, read=0, unread=4)
    assert events("parser.success_rate_dropped") == []
