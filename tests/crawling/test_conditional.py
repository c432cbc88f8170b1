"""Pages that did not change: asked for with conditions, not read again, still counted."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from crawling import control, pages, parsing
from crawling.leases import Claim
from crawling.models import CrawlTask, PageValidator, StoredPage
from crawling.slices import run_slice
from crawling.tasks import parse_slice, return_expired_leases
from extraction.items import NoProduct
from extraction.product import extract_product
from monitoring import reading, runs
from monitoring.models import Product, ProductHistory, Website
from notifications.models import Event
from tests.factories.monitoring import ProductFactory, WebsiteFactory
from tests.shop.server import ScriptedShop

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback", "page_files"),
]
SLUG = "desk-lamp"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the pages that were read for their meaning."""
    found: list[str] = []

    def remember(body: bytes, url: str, **known: Any) -> Any:
        found.append(url)
        return extract_product(body, url, **known)

    monkeypatch.setattr(reading, "extract_product", remember)
    return found


def watch(shop: ScriptedShop, path: str = "") -> Product:
    product: Product = ProductFactory.create(
        website=WebsiteFactory.create(active=True),
        approved=True,
        original_url=shop.url + path if path else shop.product_url(SLUG),
        current_price=None,
        current_currency="",
        current_stock_status="unknown",
    )
    return product


def check(website: Website) -> CrawlTask:
    runs.start_monitoring(website, triggered_by="manual")
    run_slice(5)
    return CrawlTask.objects.filter(website_id=website.pk, purpose="product").latest("created_at")


def rows(product: Product) -> list[tuple[Any, ...]]:
    fields = ("price", "currency", "stock_status", "page_hash")
    history = ProductHistory.objects.filter(product_id=product.pk).order_by("crawl_timestamp")
    return list(history.values_list(*fields))


@pytest.mark.parametrize("validators", [True, False])
def test_an_unchanged_page_is_not_read_again_and_its_check_counts(
    shop: ScriptedShop, read: list[str], validators: bool
) -> None:
    shop.validators = validators
    product = watch(shop)
    first, second = check(product.website), check(product.website)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert (second.status, second.http_status) == ("completed", 304 if validators else 200)
    assert first.stored_page == second.stored_page == StoredPage.objects.get()
    assert len(read) == 1
    before, after = rows(product)
    assert before == after
    seen_before = product.last_crawled_at
    product.refresh_from_db()
    assert product.last_crawled_at == second.fetched_at != seen_before


def test_a_changed_page_is_read_and_told(shop: ScriptedShop, read: list[str]) -> None:
    product = watch(shop)
    check(product.website)
    shop.set_price(SLUG, "30.00")
    task = check(product.website)
    assert (task.http_status, task.from_cache, len(read)) == (200, False, 2)
    assert Event.objects.filter(type="product.price_changed").count() == 1
    check(product.website)
    assert len(read) == 2


def test_another_clients_product_is_read_from_the_stored_page(
    shop: ScriptedShop, read: list[str]
) -> None:
    mine, theirs = watch(shop), watch(shop)
    check(mine.website)
    task = check(theirs.website)
    assert (task.http_status, len(read)) == (304, 2)
    assert rows(theirs) == rows(mine)
    theirs.refresh_from_db()
    assert theirs.current_price is not None


def test_a_page_that_could_not_be_read_is_fetched_whole_the_next_time(
    shop: ScriptedShop,
) -> None:
    product = watch(shop, "/soft-404")
    for _ in range(2):
        task = check(product.website)
        assert (task.status, task.http_status, task.error_category) == ("failed", 200, "parse")
    assert not PageValidator.objects.exists()


def test_a_page_that_is_read_no_more_loses_its_validator(
    shop: ScriptedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = watch(shop)
    check(product.website)
    shop.set_price(SLUG, "30.00")
    with monkeypatch.context() as patched:
        patched.setattr(reading, "extract_product", lambda *_, **__: NoProduct("nothing"))
        assert check(product.website).status == "failed"
    assert not PageValidator.objects.exists()
    assert check(product.website).http_status == 200
    assert rows(product)[-1][0] == 30


def test_a_parser_of_today_reads_an_unchanged_page_again(
    shop: ScriptedShop, read: list[str]
) -> None:
    product = watch(shop)
    check(product.website)
    Product.objects.update(parser_version="0")
    assert check(product.website).http_status == 304
    assert len(read) == 2


def test_a_rule_that_changed_makes_news_of_an_unchanged_page(shop: ScriptedShop) -> None:
    product = watch(shop)
    check(product.website)
    Product.objects.update(notified_price=1)
    assert check(product.website).http_status == 304
    assert Event.objects.filter(type="product.price_changed").count() == 1


def test_not_modified_of_another_address_is_not_believed(shop: ScriptedShop) -> None:
    product = watch(shop)
    check(product.website)
    PageValidator.objects.update(final_url_hash="elsewhere")
    task = check(product.website)
    assert (task.status, task.retry_count) == ("pending", 1)
    assert len(rows(product)) == 1
    CrawlTask.objects.filter(pk=task.pk).update(scheduled_at=timezone.now())
    run_slice(5)
    task.refresh_from_db()
    assert (task.status, task.http_status) == ("completed", 200)


def test_a_page_that_was_lost_is_fetched_whole(shop: ScriptedShop, page_files: Path) -> None:
    mine, theirs = watch(shop), watch(shop)
    stored = check(mine.website).stored_page
    assert stored is not None
    (page_files / stored.storage_key).unlink()
    task = check(theirs.website)
    assert (task.status, task.error_message) == ("pending", "the stored page is lost")
    CrawlTask.objects.filter(pk=task.pk).update(scheduled_at=timezone.now())
    run_slice(5)
    task.refresh_from_db()
    assert (task.status, task.http_status) == ("completed", 200)
    assert pages.read_page(StoredPage.objects.get())


def read_again(task: CrawlTask) -> CrawlTask:
    control.restart(task, from_="parse")
    parse_slice()
    task.refresh_from_db()
    return task


def test_a_restart_from_fetch_asks_for_the_page_itself(shop: ScriptedShop, read: list[str]) -> None:
    product = watch(shop)
    check(product.website)
    runs.start_monitoring(product.website, triggered_by="manual")
    waiting = CrawlTask.objects.get(status="pending")
    control.pause(waiting)
    control.restart(waiting)
    run_slice(5)
    waiting.refresh_from_db()
    assert (waiting.http_status, waiting.from_cache, len(read)) == (200, False, 2)


def test_a_disk_that_is_full_costs_the_page_but_not_its_price(
    shop: ScriptedShop, page_files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page_files.write_text("a file where the folder should be")
    product = watch(shop)
    first, second = check(product.website), check(product.website)
    assert [task.status for task in (first, second)] == ["completed", "completed"]
    assert (second.http_status, second.stored_page) == (200, None)
    assert len(rows(product)) == 2
    assert "pages cannot be stored" in caplog.text


def test_a_stored_page_is_read_again_without_the_shop(shop: ScriptedShop) -> None:
    product = watch(shop)
    task = check(product.website)
    before, fetched_at = rows(product), task.fetched_at
    shop.forget()
    Product.objects.update(name="misread", current_price=3, notified_price=3, brand="misread")
    job = task.job
    task = read_again(task)
    job.refresh_from_db()
    assert (job.status, job.processed, job.errors) == ("success", 1, 0)
    assert (task.status, task.fetched_at, shop.log) == ("completed", fetched_at, [])
    assert rows(product) == before
    product.refresh_from_db()
    assert (product.current_price, product.brand != "misread") == (before[0][0], True)
    # Nobody was told, so the client's price stays the measure.
    assert product.notified_price == 3
    assert set(Event.objects.values_list("type", flat=True)) <= {"job.completed"}


def test_a_page_that_could_not_be_read_gets_its_row_when_it_can(
    shop: ScriptedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = watch(shop)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "extract_product", lambda *_, **__: NoProduct("nothing"))
        task = check(product.website)
    assert (task.status, rows(product)) == ("failed", [])
    read_again(task)
    (row,) = ProductHistory.objects.filter(product_id=product.pk)
    assert row.crawl_timestamp == task.fetched_at


def test_an_older_page_that_is_read_again_does_not_turn_back_the_product(
    shop: ScriptedShop,
) -> None:
    product = watch(shop)
    old = check(product.website)
    shop.set_price(SLUG, "30.00")
    check(product.website)
    ProductHistory.objects.filter(crawl_task_id=old.pk).delete()
    read_again(old)
    product.refresh_from_db()
    assert product.current_price == 30
    assert [row[0] for row in rows(product)][-1] == 30
    assert len(rows(product)) == 2


def test_a_page_that_is_gone_says_so(shop: ScriptedShop, page_files: Path) -> None:
    product = watch(shop)
    task = check(product.website)
    assert task.stored_page is not None
    (page_files / task.stored_page.storage_key).unlink()
    task = read_again(task)
    assert task.status == "failed"
    assert "restart the task from fetch" in task.error_message


def test_a_reader_that_died_leaves_its_pages_to_the_next(shop: ScriptedShop) -> None:
    product = watch(shop)
    task = check(product.website)
    CrawlTask.objects.filter(pk=task.pk).update(status="queued_parse")
    (claimed,) = parsing.claim(10)
    assert parsing.claim(10) == []
    past = timezone.now() - dt.timedelta(seconds=1)
    CrawlTask.objects.filter(pk=task.pk).update(leased_until=past)
    assert return_expired_leases() == 1
    late: Claim = claimed.claim
    assert parsing.run_parse_slice(5) == 1
    task.refresh_from_db()
    assert (task.status, task.fence) == ("completed", late.fence + 2)
