"""POST /products/{id}/reparse and /websites/{id}/reparse: stored pages, read again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import AuditEntry
from common.partitions import ensure_partitions
from crawling import control, parsing
from crawling.fetching import Failure, Page
from crawling.frontier import Target, open_job, submit
from crawling.handover import hand_over
from crawling.models import CrawlJob, CrawlTask
from crawling.pages import key_of
from extraction.items import NoProduct
from monitoring.models import Product, ProductHistory, Website
from notifications.models import Event
from tests.crawling.conftest import page_files  # noqa: F401
from tests.crawling.work import claim_all
from tests.factories.monitoring import ProductFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("page_files")]
PAGE = """<title>Lamp</title><script type="application/ld+json">{{"@type": "Product",
 "name": "Lamp", "sku": "L-1", "offers": {{"price": "{price}", "priceCurrency": "EUR",
 "availability": "https://schema.org/InStock"}}}}</script><h1>Lamp</h1><b>{price} €</b>"""


def crawl(product: Product, price: str, page: str = PAGE) -> CrawlTask:
    """The product is looked at as in a real run."""
    ensure_partitions("monitoring_producthistory", now=timezone.now())
    website = product.website
    job = open_job(
        kind="monitor", triggered_by="manual", client_id=website.client_id, website_id=website.pk
    )
    assert job is not None
    submit(job, purpose="product", targets=[Target(product.original_url, product.pk)])
    (claim,) = claim_all()
    body = page.format(price=price).encode()
    headers = {"Content-Type": "text/html; charset=utf-8"}
    url = product.original_url
    hand_over([Page(claim, timezone.now(), status=200, url=url, body=body, headers=headers)])
    product.refresh_from_db()
    return CrawlTask.objects.get(pk=claim.id)


def misread(product: Product) -> None:
    """As an older parser had it."""
    Product.objects.filter(pk=product.pk).update(current_price=1, parser_version="1")
    rows = ProductHistory.objects.filter(product_id=product.pk)
    rows.update(price=F("price") / 10, parser_version="1")


@pytest.fixture
def product(website: Website) -> Product:
    return ProductFactory.create(website=website, approved=True)


def path(thing: Product | Website) -> str:
    kind = "products" if isinstance(thing, Product) else "websites"
    return f"/api/v1/{kind}/{thing.pk}/reparse"


def test_a_dry_run_shows_each_stored_page_then_and_now(api: Any, product: Product) -> None:
    crawl(product, "20.00")
    crawl(product, "30.00")
    misread(product)
    answer = api.post(path(product), {"dry_run": True})
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert (found["pages"], found["differing"]) == (2, 2)
    assert [Decimal(item["old"]["price"]) for item in found["items"]] == [3, 2]
    assert [Decimal(item["new"]["price"]) for item in found["items"]] == [30, 20]
    assert found["items"][0]["changed"] == ["price"]
    assert found["items"][0]["parser_version"] == "1"
    product.refresh_from_db()
    assert product.current_price == 1
    assert not CrawlJob.objects.filter(kind="reparse").exists()


def test_the_newest_page_corrects_the_product(api: Any, product: Product) -> None:
    crawl(product, "20.00")
    crawl(product, "30.00")
    misread(product)
    answer = api.post(path(product), {})
    assert answer.status_code == 202, answer.json()
    job = CrawlJob.objects.get(pk=answer.json()["id"])
    assert (job.kind, job.total) == ("reparse", 1)
    assert answer["Location"] == f"/api/v1/jobs/{job.pk}"
    assert parsing.run_parse_slice(1) == 1
    product.refresh_from_db()
    job.refresh_from_db()
    assert product.current_price == 30
    assert job.status == "success"
    assert ProductHistory.objects.filter(product_id=product.pk).count() == 2
    assert AuditEntry.objects.filter(verb="reparse").count() == 1


def test_a_website_is_shown_first_and_then_read_again(api: Any, website: Website) -> None:
    products = ProductFactory.create_batch(3, website=website, approved=True)
    for product in products:
        crawl(product, "20.00")
        misread(product)
    found = api.post(path(website), {"dry_run": True, "limit": 2}).json()
    assert (found["pages"], found["differing"]) == (2, 2)
    assert api.post(path(website), {}).json()["total"] == 3
    assert parsing.run_parse_slice(1) == 3
    assert set(website.products.values_list("current_price", flat=True)) == {20}
    assert api.post(path(website), {"dry_run": True}).json()["differing"] == 0


def test_a_task_is_restarted_from_its_stored_page(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a parser of a newer version, as an update brings it."""
    task = crawl(product, "20.00")
    misread(product)
    monkeypatch.setattr("monitoring.snapshots.PARSER_VERSION", "99")
    control.restart(task, from_="parse")
    assert parsing.run_parse_slice(1) == 1
    product.refresh_from_db()
    task.refresh_from_db()
    assert product.current_price == 20
    assert product.parser_version == "99"
    assert task.status == "completed"
    assert ProductHistory.objects.filter(product_id=product.pk).count() == 1


def test_a_lost_page_is_told_of(api: Any, product: Product, page_files: Path) -> None:  # noqa: F811
    crawl(product, "20.00")
    (page_files / key_of(product.page_hash)).unlink()
    (item,) = api.post(path(product), {"dry_run": True}).json()["items"]
    assert item["new"] is None
    assert "lost" in item["why"]


def test_without_a_stored_page_there_is_nothing_to_read(api: Any, product: Product) -> None:
    assert api.post(path(product), {"dry_run": True}).json()["items"] == []
    answer = api.post(path(product), {})
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")
    assert not CrawlJob.objects.exists()


def test_other_clients_find_nothing(stranger: Any, product: Product, website: Website) -> None:
    assert stranger.post(path(product), {}).status_code == 404
    assert stranger.post(path(website), {}).status_code == 404


def test_reading_is_not_enough(reader: Any, product: Product) -> None:
    assert reader.post(path(product), {"dry_run": True}).status_code == 403


@pytest.mark.parametrize("body", [{"limit": 0}, {"limit": 1000}, {"dry": True}])
def test_bad_input_is_refused(api: Any, product: Product, body: dict[str, Any]) -> None:
    assert api.post(path(product), body).status_code == 400


def miss(product: Product) -> None:
    """The shop answers 404, at the time of another second look."""
    website = product.website
    job = open_job(
        kind="monitor", triggered_by="manual", client_id=website.client_id, website_id=website.pk
    )
    assert job is not None
    CrawlTask.objects.filter(status="pending").update(status="cancelled")
    submit(job, purpose="product", targets=[Target(product.original_url, product.pk)])
    (claim,) = claim_all()
    failure = Failure("http", "the shop answered 404", transient=False)
    hand_over([Page(claim, timezone.now(), failure, status=404, url=product.original_url)])
    product.refresh_from_db()


def test_an_old_page_brings_no_delisted_product_back(api: Any, product: Product) -> None:
    crawl(product, "20.00")
    miss(product)
    miss(product)
    delisted_at, crawled_at = product.delisted_at, product.last_crawled_at
    assert delisted_at is not None
    misread(product)
    assert api.post(path(product), {}).status_code == 202
    assert parsing.run_parse_slice(1) == 1
    product.refresh_from_db()
    assert product.current_price == 20
    assert (product.delisted_at, product.last_crawled_at) == (delisted_at, crawled_at)
    assert product.last_changed_at == delisted_at
    assert ProductHistory.objects.filter(product_id=product.pk).count() == 1
    assert not Event.objects.filter(type="product.relisted").exists()
    crawl(product, "20.00")
    assert product.delisted_at is None
    assert Event.objects.filter(type="product.relisted").count() == 1


def test_a_stored_page_that_says_gone_today_delists_nothing(
    api: Any, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser of today takes the page for one that says the product is gone."""
    crawl(product, "20.00")
    monkeypatch.setattr("monitoring.absences.says_gone", lambda page, item: True)
    monkeypatch.setattr("monitoring.reading.Reader.read", lambda self, page: NoProduct("gone"))
    for _ in range(2):
        assert api.post(path(product), {}).status_code == 202
        parsing.run_parse_slice(1)
    before = product.last_crawled_at
    product.refresh_from_db()
    assert (product.missing_at, product.delisted_at) == (None, None)
    assert product.last_crawled_at == before
    assert not Event.objects.filter(type="product.delisted").exists()


def test_what_was_said_by_hand_outlives_the_next_check(api: Any, product: Product) -> None:
    crawl(product, "20.00")
    said = {"gtin": "4006381333931", "mpn": "M-1", "category": "Mine"}
    assert api.patch(f"/api/v1/products/{product.pk}", said).status_code == 200
    own = '"sku": "L-1", "gtin13": "9780306406157", "mpn": "M-2", "brand": "Bright"'
    described = PAGE.replace('"sku": "L-1"', own)
    crawl(product, "21.00", described)
    assert [product.gtin, product.mpn, product.category] == list(said.values())
    assert api.patch(f"/api/v1/products/{product.pk}", {"gtin": ""}).status_code == 200
    crawl(product, "22.00", described)
    assert (product.gtin, product.mpn) == ("9780306406157", "M-1")


def test_a_page_that_once_names_no_brand_takes_none_away(product: Product) -> None:
    own = '"sku": "L-1", "gtin13": "9780306406157", "mpn": "M-2", "brand": "Bright"'
    crawl(product, "20.00", PAGE.replace('"sku": "L-1"', own))
    crawl(product, "20.00")
    assert (product.gtin, product.mpn, product.brand) == ("9780306406157", "M-2", "Bright")
