"""POST /urls/inspect: what a URL is, without asking its shop."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.utils import timezone

from common import guard
from crawling.models import Domain
from monitoring.models import Website
from tests.factories.monitoring import ProductFactory

pytestmark = pytest.mark.django_db
INSPECT = "/api/v1/urls/inspect"
URL = "https://Shop.example/dp/B00TEST123?utm_source=news#top"
PLAIN = "https://shop.example/dp/B00TEST123"


@pytest.fixture(autouse=True)
def public_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve_name", lambda host: ["93.184.215.14"])


def test_a_url_is_named_by_its_normal_form(reader: Any) -> None:
    found = reader.post(INSPECT, {"url": URL}).json()
    assert found["normalized_url"] == PLAIN
    assert found["url_hash"] == hashlib.sha256(PLAIN.encode()).hexdigest()
    assert (found["host"], found["product_id"]) == ("shop.example", "B00TEST123")
    assert (found["address"], found["robots"], found["domain"]) == ("ok", "unknown", "unknown")
    assert found["duplicate_of"] is None


@pytest.mark.parametrize("url", ["http://10.0.0.1/p", "http://169.254.169.254/"])
def test_an_address_that_must_not_be_reached_is_one_word(reader: Any, url: str) -> None:
    answer = reader.post(INSPECT, {"url": url})
    assert answer.status_code == 200
    assert answer.json()["address"] == "blocked"


def test_what_is_known_of_the_domain_is_told(reader: Any) -> None:
    Domain.objects.create(
        host="shop.example",
        base_url="https://shop.example",
        robots_body="User-agent: *\nDisallow: /dp/",
        robots_status=200,
        robots_fetched_at=timezone.now(),
        breaker_state="open",
    )
    found = reader.post(INSPECT, {"url": URL}).json()
    assert (found["robots"], found["domain"]) == ("forbidden", "circuit_open")
    Domain.objects.update(is_blocked=True)
    assert reader.post(INSPECT, {"url": URL}).json()["domain"] == "blocked"


def test_a_duplicate_is_named_to_its_owner_only(
    reader: Any, stranger: Any, website: Website
) -> None:
    product = ProductFactory.create(website=website, original_url=PLAIN, approved=True)
    found = reader.post(INSPECT, {"url": URL}).json()
    assert (found["duplicate_of"], found["duplicate_approval"]) == (str(product.pk), "approved")
    assert stranger.post(INSPECT, {"url": URL}).json()["duplicate_of"] is None


@pytest.mark.parametrize(
    "url", ["", "no address", "ftp://shop.example/", "https://a:b@shop.example/"]
)
def test_nonsense_is_refused(reader: Any, url: str) -> None:
    answer = reader.post(INSPECT, {"url": url})
    assert answer.status_code == 400
    assert answer.json()["code"] in ("URL_INVALID", "VALIDATION_ERROR")


def test_a_key_is_needed(client: Any) -> None:
    assert client.post(INSPECT, {}, content_type="application/json").status_code == 401
