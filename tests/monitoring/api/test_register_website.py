from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import Settings

from accounts.models import AuditEntry, Client
from crawling.models import CrawlJob, CrawlTask
from monitoring.models import Website
from notifications.models import WebhookEndpoint
from tests.factories.accounts import api_for
from tests.factories.crawling import DomainFactory
from tests.factories.monitoring import WebsiteFactory

pytestmark = pytest.mark.django_db
WEBSITES = "/api/v1/websites"
SHOP = "http://shop.localhost:8601/"


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True


def test_a_shop_is_registered_scheduled_and_discovered(api: Any, client_row: Client) -> None:
    answer = api.post(WEBSITES, {"base_url": SHOP})
    assert answer.status_code == 201
    body = answer.json()
    website = Website.objects.get()
    assert answer["Location"] == f"{WEBSITES}/{website.pk}"
    assert body["status"] == "pending_approval"
    assert body["name"] == "shop.localhost:8601"
    assert body["schedule"].startswith("At ")
    assert body["next_run_at"] is None
    job = CrawlJob.objects.get()
    assert body["discovery_job_id"] == str(job.pk)
    assert CrawlTask.objects.get().url == SHOP
    assert website.client == client_row
    assert AuditEntry.objects.get(verb="register").actor_kind == "key"


def test_everything_a_client_may_ask_for_is_kept(api: Any) -> None:
    asked = {
        "base_url": SHOP,
        "seed_urls": [f"{SHOP}a", f"{SHOP}b"],
        "name": "My shop",
        "kind": "content",
        "crawl_frequency_minutes": 360,
        "price_change_threshold_pct": "2.50",
        "price_change_threshold_abs": "5",
        "retention_days": 30,
        "webhook_endpoint_url": "http://hooks.localhost:8602/in",
        "webhook_enabled": False,
    }
    body = api.post(WEBSITES, asked).json()
    expected = asked | {"price_change_threshold_abs": "5.00"}
    assert {name: body[name] for name in expected} == expected
    assert CrawlTask.objects.count() == 2
    assert WebhookEndpoint.objects.get().is_active is False


def test_the_same_request_with_a_key_is_done_once(api: Any) -> None:
    first = api.post(WEBSITES, {"base_url": SHOP}, HTTP_IDEMPOTENCY_KEY="one")
    second = api.post(WEBSITES, {"base_url": SHOP}, HTTP_IDEMPOTENCY_KEY="one")
    assert first.json() == second.json()
    assert Website.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "attr"),
    [
        ({"base_url": ""}, "base_url"),
        ({"base_url": None}, "base_url"),
        ({"seed_urls": []}, "seed_urls"),
        ({"seed_urls": [SHOP] * 101}, "seed_urls"),
        ({"seed_urls": [SHOP, "http://other.localhost:8601/"]}, "seed_urls.1"),
        ({"crawl_frequency_minutes": 5}, "crawl_frequency_minutes"),
        ({"price_change_threshold_pct": "0"}, "price_change_threshold_pct"),
        ({"price_change_threshold_pct": "100.01"}, "price_change_threshold_pct"),
        ({"price_change_threshold_abs": "-1"}, "price_change_threshold_abs"),
        ({"retention_days": 29}, "retention_days"),
        ({"retention_days": 366}, "retention_days"),
        ({"kind": "bakery"}, "kind"),
        ({"name": "x" * 256}, "name"),
        ({"webhook_endpoint_url": "ftp://hooks.localhost/"}, "webhook_endpoint_url"),
        ({"webhook_url": "http://hooks.localhost/"}, "webhook_url"),
    ],
)
def test_bad_input_is_named_and_nothing_is_kept(
    api: Any, change: dict[str, Any], attr: str
) -> None:
    answer = api.post(WEBSITES, {"base_url": SHOP} | change)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"].startswith(attr)
    assert not Website.objects.exists()
    assert not CrawlJob.objects.exists()


@pytest.mark.parametrize(
    ("url", "status", "code"),
    [
        ("http://127.0.0.1/", 403, "URL_BLOCKED"),
        ("http://shop.localhost/", 403, "URL_BLOCKED"),
        ("http://10.0.0.1/", 403, "URL_BLOCKED"),
        ("http://169.254.169.254/latest", 403, "URL_BLOCKED"),
        ("http://[::1]/", 403, "URL_BLOCKED"),
        ("http://0x7f000001/", 403, "URL_BLOCKED"),
        ("ftp://shop.example/", 400, "URL_INVALID"),
        ("javascript:alert(1)", 400, "URL_INVALID"),
        ("shop.example", 400, "URL_INVALID"),
        ("http://user:pw@shop.example/", 400, "URL_INVALID"),
    ],
)
@pytest.mark.parametrize("place", ["base_url", "seed_urls.0", "webhook_endpoint_url"])
def test_private_and_malformed_addresses_are_refused_everywhere(
    api: Any, settings: Settings, place: str, url: str, status: int, code: str
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = []
    # A literal address: nothing has to be looked up.
    body: dict[str, Any] = {"base_url": "http://8.8.8.8/"}
    body |= {"seed_urls": [url]} if place == "seed_urls.0" else {place: url}
    answer = api.post(WEBSITES, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["errors"][0]["attr"] == place
    assert not Website.objects.exists()


def test_a_shop_is_registered_once_per_client(api: Any, stranger: Any) -> None:
    assert api.post(WEBSITES, {"base_url": SHOP}).status_code == 201
    again = api.post(WEBSITES, {"base_url": f"{SHOP}?utm_source=x"})
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
    assert stranger.post(WEBSITES, {"base_url": SHOP}).status_code == 201


def test_the_quota_is_respected(api: Any, client_row: Client) -> None:
    client_row.max_websites = 1
    client_row.save()
    WebsiteFactory.create(client=client_row)
    answer = api.post(WEBSITES, {"base_url": SHOP})
    assert (answer.status_code, answer.json()["code"]) == (403, "LIMIT_REACHED")
    assert Website.objects.count() == 1


def test_a_blocked_shop_is_refused(api: Any) -> None:
    DomainFactory.create(host="shop.localhost:8601", blocked=True)
    answer = api.post(WEBSITES, {"base_url": SHOP})
    assert (answer.status_code, answer.json()["code"]) == (403, "DOMAIN_BLOCKED")


def test_registering_needs_a_key_that_may_write(client: Browser, reader: Any) -> None:
    assert client.post(WEBSITES, {}, "application/json").status_code == 401
    assert reader.post(WEBSITES, {"base_url": SHOP}).status_code == 403
    assert not Website.objects.exists()


def test_an_operator_names_the_client(client_row: Client) -> None:
    operator = api_for(None)
    assert operator.post(WEBSITES, {"base_url": SHOP}).json()["errors"][0]["attr"] == "client"
    answer = operator.post(f"{WEBSITES}?client={client_row.pk}", {"base_url": SHOP})
    assert answer.json()["client_id"] == str(client_row.pk)


def test_me_shows_what_is_used(api: Any) -> None:
    api.post(WEBSITES, {"base_url": SHOP})
    usage = api.get("/api/v1/me").json()["usage"]
    assert (usage["websites"], usage["products"]) == (1, 0)
