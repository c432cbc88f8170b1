from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import AuditEntry, Client
from common.ids import uuid7
from crawling.models import CrawlJob
from monitoring.models import Product, Website
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
CANDIDATES = "/api/v1/candidates"


def ids_of(answer: Any) -> set[str]:
    return {item["id"] for item in answer.json()["items"]}


def test_pending_candidates_are_listed_with_why(reader: Any, website: Website) -> None:
    pending = ProductFactory.create(website=website, pending=True)
    ProductFactory.create(website=website, approved=True)
    (item,) = reader.get(CANDIDATES).json()["items"]
    assert item["id"] == str(pending.pk)
    assert (item["price"], item["currency"], item["stock_status"]) == ("19.90", "EUR", "in_stock")
    assert (item["discovery_score"], item["discovery_reason"]) == (0.9, pending.discovery_reason)


def test_candidates_are_filtered(reader: Any, client_row: Client, website: Website) -> None:
    lamp = ProductFactory.create(website=website, name="Lamp", discovery_score=0.9)
    chair = ProductFactory.create(website=website, name="Chair", discovery_score=0.3)
    gone = ProductFactory.create(website=website, rejected=True)
    other = ProductFactory.create(website=WebsiteFactory.create(client=client_row))
    for query, found in (
        ({"score_min": "0.5", "website": str(website.pk)}, {lamp}),
        ({"q": "chai"}, {chair}),
        ({"approval": "rejected"}, {gone}),
        ({"website": str(other.website_id)}, {other}),
    ):
        assert ids_of(reader.get(CANDIDATES, query)) == {str(row.pk) for row in found}
    nested = reader.get(f"/api/v1/websites/{website.pk}/candidates")
    assert ids_of(nested) == {str(lamp.pk), str(chair.pk)}


def test_approving_watches_the_product(api: Any, client_row: Client) -> None:
    website = WebsiteFactory.create(client=client_row)
    product = ProductFactory.create(website=website, pending=True)
    answer = api.post(f"{CANDIDATES}/{product.pk}/approve")
    assert (answer.status_code, answer.json()["approval"]) == (200, "approved")
    website.refresh_from_db()
    assert (website.status, website.approved_product_count) == ("active", 1)
    assert CrawlJob.objects.get().kind == "baseline"
    assert AuditEntry.objects.get(verb="approve").object_id == str(product.pk)


def test_rejecting_stays(api: Any, website: Website) -> None:
    product = ProductFactory.create(website=website, approved=True)
    answer = api.post(f"{CANDIDATES}/{product.pk}/reject")
    assert (answer.status_code, answer.json()["approval"]) == (200, "rejected")
    again = api.post(f"{CANDIDATES}/{product.pk}/reject")
    assert (again.status_code, again.json()["code"]) == (409, "INVALID_STATE")


def test_an_approved_product_cannot_be_approved_again(api: Any, website: Website) -> None:
    product = ProductFactory.create(website=website, approved=True)
    answer = api.post(f"{CANDIDATES}/{product.pk}/approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert not CrawlJob.objects.exists()


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_only_its_own_client_with_a_writing_key_may_decide(
    client: Browser, reader: Any, stranger: Any, website: Website, verb: str
) -> None:
    product = ProductFactory.create(website=website)
    path = f"{CANDIDATES}/{product.pk}/{verb}"
    assert client.post(path).status_code == 401
    assert reader.post(path).status_code == 403
    assert stranger.post(path).status_code == 404
    product.refresh_from_db()
    assert product.approval == "pending"
    assert ids_of(stranger.get(CANDIDATES)) == set()
    assert stranger.get(f"/api/v1/websites/{website.pk}/candidates").status_code == 404
    assert client.get(CANDIDATES).status_code == 401


def test_an_unknown_candidate_is_not_found(api: Any) -> None:
    assert api.post(f"{CANDIDATES}/{uuid7()}/approve").status_code == 404
    assert not Product.objects.exists()
