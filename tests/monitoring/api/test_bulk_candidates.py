from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import AuditEntry, Client
from common.ids import uuid7
from crawling.models import CrawlJob
from monitoring.models import Product, Website
from notifications.models import Event
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
BULK = "/api/v1/candidates/bulk"


def results(answer: Any) -> dict[str, str]:
    return {item["id"]: item["result"] for item in answer.json()["items"]}


def test_each_id_gets_its_answer(api: Any, website: Website) -> None:
    fresh = ProductFactory.create(website=website)
    known = ProductFactory.create(website=website, approved=True)
    theirs, unknown = ProductFactory.create(), uuid7()
    ids = [str(pk) for pk in (fresh.pk, known.pk, theirs.pk, unknown)]
    answer = api.post(BULK, {"action": "approve", "ids": ids})
    assert answer.status_code == 200
    expected = ["approved", "unchanged", "not_found", "not_found"]
    assert results(answer) == dict(zip(ids, expected, strict=True))
    assert answer.json()["done"] == 1
    theirs.refresh_from_db()
    assert theirs.approval == "pending"
    assert CrawlJob.objects.count() == 1


def test_a_filter_means_the_pending_ones_above_a_score(api: Any, website: Website) -> None:
    good = ProductFactory.create(website=website, discovery_score=0.9)
    ProductFactory.create(website=website, discovery_score=0.2)
    ProductFactory.create(website=website, discovery_score=0.9, rejected=True)
    wanted = {"website": str(website.pk), "score_min": 0.5}
    answer = api.post(BULK, {"action": "approve", "filter": wanted})
    assert results(answer) == {str(good.pk): "approved"}


def test_many_are_rejected_at_once(api: Any, website: Website) -> None:
    rows = ProductFactory.create_batch(3, website=website)
    answer = api.post(BULK, {"action": "reject", "ids": [str(row.pk) for row in rows]})
    assert set(results(answer).values()) == {"rejected"}
    assert Product.objects.filter(approval="rejected").count() == 3


def test_a_dry_run_says_the_same_and_changes_nothing(api: Any, website: Website) -> None:
    product = ProductFactory.create(website=website)
    body = {"action": "approve", "ids": [str(product.pk)], "dry_run": True}
    answer = api.post(BULK, body)
    assert answer.json()["dry_run"] is True
    assert results(answer) == {str(product.pk): "approved"}
    product.refresh_from_db()
    assert product.approval == "pending"
    for model in (CrawlJob, Event):
        assert not model.objects.exists()
    assert not AuditEntry.objects.filter(verb="approve").exists()


def test_a_full_website_refuses_its_own_and_no_others(api: Any, client_row: Client) -> None:
    client_row.max_products_per_website = 1
    client_row.save()
    full, free = WebsiteFactory.create_batch(2, client=client_row)
    crowd = ProductFactory.create_batch(2, website=full)
    single = ProductFactory.create(website=free)
    ids = [str(row.pk) for row in (*crowd, single)]
    answer = api.post(BULK, {"action": "approve", "ids": ids})
    assert results(answer) == dict(zip(ids, ["refused", "refused", "approved"], strict=True))
    assert "max_products_per_website" in answer.json()["items"][0]["detail"]


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "action"),
        ({"action": "burn", "ids": [str(uuid7())]}, "action"),
        ({"action": "approve"}, "ids"),
        ({"action": "approve", "ids": []}, "ids"),
        ({"action": "approve", "ids": ["x"]}, "ids.0"),
        ({"action": "approve", "ids": [str(uuid7())] * 1001}, "ids"),
        ({"action": "approve", "filter": {}}, "filter"),
        ({"action": "approve", "filter": {"brand": "x"}}, "filter.brand"),
        ({"action": "approve", "ids": [str(uuid7())], "filter": {"score_min": 0}}, "ids"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    api: Any, website: Website, body: dict[str, Any], attr: str
) -> None:
    product = ProductFactory.create(website=website)
    answer = api.post(BULK, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    product.refresh_from_db()
    assert product.approval == "pending"


def test_it_needs_a_key_that_may_write(client: Browser, reader: Any) -> None:
    assert client.post(BULK, {}, "application/json").status_code == 401
    assert reader.post(BULK, {"action": "approve", "ids": [str(uuid7())]}).status_code == 403
