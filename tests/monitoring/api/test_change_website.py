from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import Settings

from accounts.models import AuditEntry
from crawling.models import CrawlJob
from monitoring import schedules
from monitoring.models import Website
from notifications.models import Event, WebhookEndpoint
from tests.factories.crawling import ProfileFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(website: Website) -> str:
    return f"/api/v1/websites/{website.pk}"


def test_what_is_named_is_changed_and_logged(api: Any, path: str, website: Website) -> None:
    before = schedules.describe(website)
    answer = api.patch(path, {"name": "New", "crawl_frequency_minutes": 360})
    assert answer.status_code == 200
    assert answer.json()["name"] == "New"
    assert answer.json()["schedule"] != before
    entry = AuditEntry.objects.get(verb="update")
    assert entry.before == {"name": website.name, "crawl_frequency_minutes": 1440}
    assert entry.after == {"name": "New", "crawl_frequency_minutes": 360}


def test_thresholds_and_retention_are_changed(api: Any, path: str, website: Website) -> None:
    changes = {
        "price_change_threshold_pct": "0.50",
        "price_change_threshold_abs": "1.00",
        "retention_days": 365,
    }
    assert api.patch(path, changes).json() | changes == api.get(path).json()
    assert api.patch(path, {"price_change_threshold_abs": None}).status_code == 200
    website.refresh_from_db()
    assert website.price_change_threshold_abs is None


def test_the_webhook_is_set_switched_off_and_removed(
    api: Any, path: str, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    url = "http://hooks.localhost:8602/in"
    assert api.patch(path, {"webhook_endpoint_url": url}).json()["webhook_endpoint_url"] == url
    api.patch(path, {"webhook_enabled": False})
    assert WebhookEndpoint.objects.get().is_active is False
    api.patch(path, {"webhook_enabled": True})
    assert WebhookEndpoint.objects.get().is_active is True
    assert api.patch(path, {"webhook_endpoint_url": None}).json()["webhook_endpoint_url"] is None
    assert not WebhookEndpoint.objects.exists()


def test_endpoints_of_the_whole_client_hear_of_a_website_whose_own_webhook_rests(
    api: Any, path: str, website: Website
) -> None:
    EndpointFactory.create(client=website.client, website_id=website.pk)
    of_all = EndpointFactory.create(client=website.client, website_id=None)
    api.patch(path, {"webhook_enabled": False})
    api.post(f"{path}/pause")
    event = Event.objects.get(type="website.paused")
    assert [delivery.endpoint_id for delivery in event.deliveries.all()] == [of_all.pk]


def test_a_stale_change_is_refused(api: Any, path: str, website: Website) -> None:
    seen = api.get(path)["ETag"]
    fresh = api.patch(path, {"name": "First"}, HTTP_IF_MATCH=seen)
    assert fresh.status_code == 200
    assert fresh["ETag"] != seen
    stale = api.patch(path, {"name": "Second"}, HTTP_IF_MATCH=seen)
    assert (stale.status_code, stale.json()["code"]) == (412, "PRECONDITION_FAILED")
    website.refresh_from_db()
    assert website.name == "First"
    assert api.patch(path, {"name": "Second"}, HTTP_IF_MATCH=fresh["ETag"]).status_code == 200


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"name": ""}, "name"),
        ({"crawl_frequency_minutes": 1}, "crawl_frequency_minutes"),
        ({"price_change_threshold_pct": "lots"}, "price_change_threshold_pct"),
        ({"retention_days": 1}, "retention_days"),
        ({"base_url": "https://other.example/"}, "base_url"),
        ({"status": "active"}, "status"),
        ({"webhook_endpoint_url": "nonsense"}, "webhook_endpoint_url"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    api: Any, path: str, website: Website, body: dict[str, Any], attr: str
) -> None:
    answer = api.patch(path, {"name": "New"} | body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    website.refresh_from_db()
    assert website.name != "New"


def test_a_private_webhook_is_refused(api: Any, path: str) -> None:
    answer = api.patch(path, {"name": "New", "webhook_endpoint_url": "https://10.0.0.1/"})
    assert (answer.status_code, answer.json()["code"]) == (403, "URL_BLOCKED")
    assert not WebhookEndpoint.objects.exists()


def test_only_its_own_client_with_a_writing_key_may(
    client: Browser, reader: Any, stranger: Any, path: str
) -> None:
    assert client.patch(path, {}, "application/json").status_code == 401
    assert reader.patch(path, {"name": "New"}).status_code == 403
    assert stranger.patch(path, {"name": "New"}).status_code == 404
    assert not Website.objects.filter(name="New").exists()


def test_a_website_is_crawled_by_its_profile(api: Any, path: str, website: Website) -> None:
    profile = ProfileFactory.create(client=website.client)
    answer = api.patch(path, {"crawl_profile_id": str(profile.pk)})
    assert (answer.status_code, answer.json()["crawl_profile_id"]) == (200, str(profile.pk))
    job = api.post(f"{path}/discover").json()
    assert CrawlJob.objects.get(pk=job["id"]).profile == profile
    assert api.patch(path, {"crawl_profile_id": None}).json()["crawl_profile_id"] is None


@pytest.mark.parametrize(
    "profile", [{}, {"client": None, "respect_robots": False}], ids=["another client's", "rude"]
)
def test_a_profile_that_is_not_offered_is_refused(
    api: Any, path: str, profile: dict[str, Any]
) -> None:
    made = ProfileFactory.create(**profile)
    answer = api.patch(path, {"crawl_profile_id": str(made.pk)})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "crawl_profile_id"
