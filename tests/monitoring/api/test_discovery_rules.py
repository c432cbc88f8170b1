from __future__ import annotations

from typing import Any

import pytest

from crawling.models import CrawlJob
from monitoring.models import FoundUrl, Product, Website
from tests.factories.crawling import JobFactory
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(website: Website) -> list[Product]:
    """Three candidates: a sure one, an unsure one, and one in the outlet."""
    site = website.base_url.rstrip("/")
    wanted = [("/p/1", 0.95), ("/p/2", 0.5), ("/outlet/3", 0.99)]
    return [
        ProductFactory.create(website=website, original_url=site + path, discovery_score=score)
        for path, score in wanted
    ]


def approvals(products: list[Product]) -> list[str]:
    for product in products:
        product.refresh_from_db()
    return [product.approval for product in products]


def test_a_new_rule_approves_what_waits_already(
    api: Any, website: Website, waiting: list[Product]
) -> None:
    rule = {"min_score": 0.9, "include": ["/p/*"]}
    answer = api.patch(f"/api/v1/websites/{website.pk}", {"auto_approve": rule})
    assert answer.status_code == 200
    assert answer.json()["auto_approve"] == rule | {"exclude": []}
    assert answer.json()["approved_product_count"] == 1
    assert approvals(waiting) == ["approved", "pending", "pending"]
    assert api.patch(f"/api/v1/websites/{website.pk}", {"auto_approve": None}).status_code == 200


def test_a_banned_pattern_rejects_what_waits(
    api: Any, website: Website, waiting: list[Product]
) -> None:
    answer = api.patch(f"/api/v1/websites/{website.pk}", {"banned_patterns": ["/outlet/*"]})
    assert answer.json()["banned_patterns"] == ["/outlet/*"]
    assert approvals(waiting) == ["pending", "pending", "rejected"]


@pytest.mark.parametrize(
    ("change", "attr"),
    [
        ({"banned_patterns": ["outlet"]}, "banned_patterns.0"),
        ({"banned_patterns": ["/*"]}, "banned_patterns.0"),
        ({"banned_patterns": ["/a*b*c*d*e*f*g"]}, "banned_patterns.0"),
        ({"banned_patterns": ["/x"] * 51}, "banned_patterns"),
        ({"auto_approve": {"min_score": 2}}, "auto_approve.min_score"),
        ({"auto_approve": {"include": ["x"]}}, "auto_approve.include.0"),
        ({"auto_approve": {"score": 1}}, "auto_approve.score"),
        ({"discovery_max_pages": 0}, "discovery_max_pages"),
    ],
)
def test_bad_rules_are_named_and_change_nothing(
    api: Any, website: Website, waiting: list[Product], change: dict[str, Any], attr: str
) -> None:
    answer = api.patch(f"/api/v1/websites/{website.pk}", change)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"].startswith(attr)
    assert approvals(waiting) == ["pending"] * 3


def test_many_are_decided_by_a_pattern_of_their_urls(
    api: Any, website: Website, waiting: list[Product]
) -> None:
    body = {"action": "reject", "filter": {"url_pattern": "/outlet/*"}, "dry_run": True}
    tried = api.post("/api/v1/candidates/bulk", body).json()
    assert (tried["done"], approvals(waiting)) == (1, ["pending"] * 3)
    body["dry_run"] = False
    assert api.post("/api/v1/candidates/bulk", body).json()["done"] == 1
    assert approvals(waiting) == ["pending", "pending", "rejected"]


def test_possible_duplicates_are_shown_and_can_be_left_out(
    api: Any, website: Website, waiting: list[Product]
) -> None:
    twin = ProductFactory.create(
        website=website, duplicate_of=waiting[0], duplicate_reason="Same SKU X"
    )
    shown = api.get("/api/v1/candidates?duplicates=true").json()["items"]
    assert [one["id"] for one in shown] == [str(twin.pk)]
    assert shown[0]["duplicate_of"] == str(waiting[0].pk)
    body = {"action": "approve", "filter": {"website": str(website.pk), "duplicates": False}}
    assert api.post("/api/v1/candidates/bulk", body).json()["done"] == 3
    twin.refresh_from_db()
    assert twin.approval == "pending"


def test_a_discovery_takes_a_limit_and_sources(api: Any, website: Website) -> None:
    url = f"/api/v1/websites/{website.pk}/discover"
    answer = api.post(url, {"max_pages": 10, "sources": ["sitemap"]})
    assert answer.status_code == 202
    job = CrawlJob.objects.get(pk=answer.json()["id"])
    assert job.parameters["max_pages"] == 10
    assert job.parameters["sources"] == ["sitemap"]
    job.delete()
    assert api.post(url).status_code == 202
    assert api.post(url, {"max_pages": 0}).status_code == 400
    assert api.post(url, {"sources": ["stars"]}).status_code == 400


def test_found_urls_answer_why(api: Any, stranger: Any, website: Website) -> None:
    job = JobFactory.create(client=website.client, website_id=website.pk)
    row = FoundUrl.objects.create(
        website=website,
        url="https://shop.example/a/",
        url_hash=_hash("https://shop.example/a/"),
        job_id=job.pk,
        purpose="discover",
        source="link",
        state="robots",
        reason="robots.txt of the shop forbids it",
        first_seen_at=job.created_at,
        last_seen_at=job.created_at,
    )
    url = f"/api/v1/websites/{website.pk}/urls"
    found = api.get(url, {"url": "https://shop.example/a?utm_source=x"}).json()["items"]
    assert [one["id"] for one in found] == [str(row.pk)]
    assert found[0]["reason"] == "robots.txt of the shop forbids it"
    assert api.get(url, {"state": "product"}).json()["items"] == []
    assert api.get(url, {"url": "nonsense"}).json()["items"] == []
    assert stranger.get(url).status_code == 404
    other = WebsiteFactory.create(client=website.client)
    assert api.get(f"/api/v1/websites/{other.pk}/urls").json()["items"] == []


def _hash(url: str) -> str:
    from common.urls import normalize_url, url_hash

    return url_hash(normalize_url(url))
