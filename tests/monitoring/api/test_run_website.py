from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import AuditEntry, Client
from crawling.models import CrawlJob, CrawlTask
from monitoring.models import Website
from notifications.models import Event
from tests.factories.crawling import JobFactory
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
VERBS = ["crawl", "discover", "pause", "resume"]


def path_of(website: Website, verb: str) -> str:
    return f"/api/v1/websites/{website.pk}/{verb}"


def test_crawling_now_starts_a_job_over_the_watched_products(api: Any, website: Website) -> None:
    watched = ProductFactory.create(website=website, approved=True)
    ProductFactory.create(website=website, pending=True)
    answer = api.post(path_of(website, "crawl"))
    job = CrawlJob.objects.get()
    assert answer.status_code == 202
    assert answer["Location"] == f"/api/v1/jobs/{job.pk}"
    assert answer.json()["id"] == str(job.pk)
    assert (job.kind, job.triggered_by) == ("monitor", "manual")
    assert CrawlTask.objects.get().object_id == watched.pk
    assert AuditEntry.objects.get(verb="crawl").after == {"job_id": str(job.pk)}


def test_a_second_crawl_beside_the_first_is_a_conflict(api: Any, website: Website) -> None:
    ProductFactory.create(website=website, approved=True)
    first = api.post(path_of(website, "crawl")).json()["id"]
    answer = api.post(path_of(website, "crawl"))
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert first in answer.json()["detail"]
    assert CrawlJob.objects.count() == 1


@pytest.mark.parametrize("status", ["pending_approval", "paused", "failed"])
def test_only_an_active_website_is_crawled(api: Any, client_row: Client, status: str) -> None:
    website = WebsiteFactory.create(client=client_row, status=status)
    answer = api.post(path_of(website, "crawl"))
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert "must be active" in answer.json()["detail"]
    assert not CrawlJob.objects.exists()


def test_discovering_now_starts_at_the_seeds(api: Any, website: Website) -> None:
    answer = api.post(path_of(website, "discover"))
    assert answer.status_code == 202
    assert answer.json()["kind"] == "discovery"
    assert CrawlTask.objects.get().url == website.seed_urls[0]


def test_discovering_without_seeds_starts_at_the_shop_itself(api: Any, website: Website) -> None:
    Website.objects.filter(pk=website.pk).update(seed_urls=[])
    assert api.post(path_of(website, "discover")).status_code == 202
    assert CrawlTask.objects.get().url == website.base_url


def test_a_second_discovery_is_a_conflict_but_a_crawl_is_not_in_its_way(
    api: Any, client_row: Client, website: Website
) -> None:
    JobFactory.create(client=client_row, website_id=website.pk, kind="monitor")
    assert api.post(path_of(website, "discover")).status_code == 202
    assert api.post(path_of(website, "discover")).json()["code"] == "CONFLICT"


def test_a_paused_website_rests_until_it_is_resumed(api: Any, website: Website) -> None:
    paused = api.post(path_of(website, "pause")).json()
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    assert api.post(path_of(website, "discover")).json()["code"] == "INVALID_STATE"
    resumed = api.post(path_of(website, "resume")).json()
    assert resumed["status"] == "active"
    assert resumed["next_run_at"]
    told = Event.objects.order_by("sequence").values_list("type", flat=True)
    assert list(told) == ["website.paused", "website.activated"]
    assert AuditEntry.objects.filter(verb__in=["pause", "resume"]).count() == 2


def test_resuming_forgives_failures(api: Any, client_row: Client) -> None:
    website = WebsiteFactory.create(client=client_row, failed=True)
    assert api.post(path_of(website, "resume")).json()["consecutive_failures"] == 0


@pytest.mark.parametrize(
    ("status", "verb", "allowed"),
    [
        ("pending_approval", "pause", "active"),
        ("paused", "pause", "active"),
        ("active", "resume", "paused or failed"),
        ("pending_approval", "resume", "paused or failed"),
    ],
)
def test_a_wrong_state_names_the_right_ones(
    api: Any, client_row: Client, status: str, verb: str, allowed: str
) -> None:
    website = WebsiteFactory.create(client=client_row, status=status)
    answer = api.post(path_of(website, verb))
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert f"must be {allowed}" in answer.json()["detail"]
    website.refresh_from_db()
    assert website.status == status


@pytest.mark.parametrize("verb", VERBS)
def test_only_its_own_client_with_a_writing_key_may(
    client: Browser, reader: Any, stranger: Any, website: Website, verb: str
) -> None:
    path = path_of(website, verb)
    assert client.post(path).status_code == 401
    assert reader.post(path).status_code == 403
    assert stranger.post(path).status_code == 404
    assert not CrawlJob.objects.exists()
