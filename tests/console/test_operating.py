"""An operator's day in a real browser: review by keys, steer websites, products and jobs."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from crawling.models import CrawlJob
from monitoring import runs
from monitoring.models import AlertRule, Product, Website
from tests.console.conftest import Console
from tests.factories.crawling import JobFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory, WebsiteFactory
from tests.factories.static import static_root  # noqa: F401

QUEUE = "/admin/monitoring/candidate/"
PRODUCTS = "/admin/monitoring/product/"
WEBSITES = "/admin/monitoring/website/"
CHANGES = "/admin/monitoring/change/"
JOBS = "/admin/crawling/crawljob/"
HOSTILE = [
    '"><script>alert(1)</script>',
    "javascript:alert(1)",
    "\u202egnp.exe\u202c lamp",
    "{{7*7}} ${7*7} lamp",
    "<img src=x onerror=alert(1)>",
    "' x-init='alert(1)",
]


@pytest.fixture
def website() -> Website:
    return WebsiteFactory.create(name="Lamps", active=True)


def act(page: Page, rows: list[str], action: str) -> None:
    for name in rows:
        page.get_by_role("row", name=name).locator("[name=_selected_action]").check()
    page.select_option("select[name=action]", action)
    page.click("button[name=index]")


def test_candidates_are_decided_with_keys(console: Console, website: Website) -> None:
    for score, name in ((0.9, "First"), (0.8, "Second"), (0.7, "Third")):
        ProductFactory.create(website=website, name=f"{name} lamp", discovery_score=score)
    page = console.open(QUEUE)
    page.keyboard.press("j")
    expect(page.locator("tr.cursor")).to_contain_text("First lamp")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("a")
    expect(page.get_by_text("1 of 1 approved.")).to_be_visible()
    # The place is kept: the next one is under the cursor.
    expect(page.locator("tr.cursor")).to_contain_text("Second lamp")
    page.keyboard.press("r")
    expect(page.get_by_text("1 of 1 rejected.")).to_be_visible()
    found = dict(Product.objects.values_list("name", "approval"))
    assert found == {"First lamp": "approved", "Second lamp": "rejected", "Third lamp": "pending"}


def test_keys_mean_letters_where_somebody_writes(console: Console, website: Website) -> None:
    ProductFactory.create(website=website, name="A lamp")
    page = console.open(QUEUE)
    page.keyboard.press("j")
    page.locator("#searchbar").press_sequentially("ra")
    expect(page.locator("#searchbar")).to_have_value("ra")
    assert Product.objects.get().approval == "pending"


def test_all_of_a_score_are_approved_at_once(console: Console, website: Website) -> None:
    for number in range(4):
        ProductFactory.create(website=website, discovery_score=0.95 if number else 0.2)
    page = console.open(QUEUE)
    page.get_by_label("Approve all from score").fill("0.9")
    page.get_by_role("button", name="Look at them").click()
    expect(page.get_by_text("3 candidates would be approved")).to_be_visible()
    page.get_by_role("button", name="Approve 3").click()
    expect(page.get_by_text("3 of 3 approved.")).to_be_visible()
    assert Product.objects.filter(approval="approved").count() == 3


def test_a_schedule_that_is_edited_runs(console: Console, website: Website) -> None:
    ProductFactory.create(website=website, approved=True)
    page = console.open(f"{WEBSITES}{website.pk}/change/")
    page.locator("a[href*=periodictask]").last.click()
    page.select_option("[name=every]", "900")
    page.click("button[name=_save]")
    page.wait_for_url("**/periodictask/")
    expect(page.get_by_role("row", name="Lamps")).to_contain_text("Every 15 minutes")
    # What beat does when the time has come.
    created = timezone.now() - dt.timedelta(days=2)
    Website.objects.filter(pk=website.pk).update(created_at=created)
    assert runs.run_scheduled(website.pk) is not None
    console.open(JOBS)
    expect(page.get_by_role("row", name="Monitor")).to_contain_text("Scheduled")


def test_websites_and_products_are_paused_and_resumed_from_their_lists(
    console: Console, website: Website
) -> None:
    ProductFactory.create(website=website, name="Desk lamp", approved=True)
    for path, name, done in ((WEBSITES, "Lamps", ""), (PRODUCTS, "Desk lamp", " of 1")):
        page = console.open(path)
        act(page, [name], "pause")
        expect(page.get_by_text(f"1{done} paused.")).to_be_visible()
        expect(page.get_by_role("row", name=name)).to_contain_text("Paused")
        act(page, [name], "resume")
        expect(page.get_by_text(f"1{done} resumed.")).to_be_visible()
    website.refresh_from_db()
    assert website.status == "active"


def test_a_job_shows_its_progress_while_it_runs(console: Console) -> None:
    job = JobFactory.create(running=True, total=10, processed=2)
    page = console.open(JOBS)
    expect(page.get_by_text("2\u00a0/\u00a010")).to_be_visible()
    CrawlJob.objects.filter(pk=job.pk).update(processed=7)
    expect(page.get_by_text("7\u00a0/\u00a010")).to_be_visible()
    page = console.open(f"{JOBS}{job.pk}/change/")
    expect(page.locator("#job-live")).to_contain_text("7 of 10 pages")
    CrawlJob.objects.filter(pk=job.pk).update(processed=10, status="success")
    expect(page.locator("#job-live")).to_contain_text("10 of 10 pages")
    expect(page.locator("[data-live]")).to_have_count(0)


def test_the_page_of_a_product_tells_its_story(console: Console, website: Website) -> None:
    provenance = {"price": {"source": "json-ld", "raw": "19,90 €", "confidence": 0.95}}
    product = ProductFactory.create(website=website, approved=True, provenance=provenance)
    now = timezone.now()
    for days, price, stock in ((9, 25, "in_stock"), (6, 25, "out_of_stock"), (3, 20, "in_stock")):
        HistoryFactory.create(
            product=product,
            crawl_timestamp=now - dt.timedelta(days=days),
            price=Decimal(price),
            stock_status=stock,
            raw_crawl_data={"price": str(price)},
        )
    ChangeFactory.create(product=product, occurred_at=now - dt.timedelta(days=3))
    page = console.open(f"{PRODUCTS}{product.pk}/change/")
    page.get_by_role("link", name="30 days").click()
    chart = page.locator("svg.price-chart")
    expect(chart.locator("rect.o")).to_have_count(1)
    expect(chart.locator("circle.m")).to_have_count(1)
    expect(page.get_by_label("Target")).to_contain_text("19,90 €")
    expect(page.get_by_label("Data")).to_contain_text("25")
    page.fill("[name=value]", "15")
    page.get_by_role("button", name="Set target").click()
    expect(page.get_by_text("The client is told: target below 15.")).to_be_visible()
    assert AlertRule.objects.get().product_id == product.pk
    page.get_by_role("button", name="Delist").click()
    expect(page.get_by_text("is delisted, and the client is told.")).to_be_visible()
    expect(page.get_by_label("Changes", exact=True)).to_contain_text("Delisted")


def test_a_change_is_dismissed_from_the_list(console: Console) -> None:
    ChangeFactory.create(product__name="Desk lamp", status="quarantined")
    page = console.open(CHANGES)
    act(page, ["Desk lamp"], "dismiss")
    expect(page.get_by_text("1 dismissed.")).to_be_visible()


def fill_with(names: list[str]) -> Product:
    for name in names:
        website = WebsiteFactory.create(name=name, active=True)
        facts = {"provenance": {"name": {"source": name, "raw": name, "confidence": 0.9}}}
        product = ProductFactory.create(
            website=website, name=name, original_url=name, brand=name, approved=True, **facts
        )
        ProductFactory.create(website=website, name=name, discovery_reason=name)
        for price in (10, 20):
            HistoryFactory.create(
                product=product, price=Decimal(price), raw_crawl_data={name: f"{name}{price}"}
            )
        ChangeFactory.create(product=product, rule=name, old=name[:64], new=name[:64])
        JobFactory.create(website_id=website.pk, error_summary=name)
    return product


@pytest.mark.parametrize(
    "path", [QUEUE, PRODUCTS, WEBSITES, CHANGES, "/admin/", f"{QUEUE}many/?score_min=0"]
)
def test_hostile_text_is_text(console: Console, path: str) -> None:
    """Dialogs, violations of the policy and foreign requests fail in the fixture."""
    fill_with(HOSTILE)
    page = console.open(path)
    if path.startswith("/admin/m") and "many" not in path:
        for text in HOSTILE:
            expect(page.locator("#result_list").get_by_text(text).first).to_be_visible()
        page.locator("#result_list a[href*='/change/']").first.click()
    page.wait_for_load_state("networkidle")
    assert page.locator("a[href^='javascript:' i]").count() == 0
    assert "49 $" not in page.inner_text("body")


@pytest.mark.parametrize("path", ["/admin/", PRODUCTS, JOBS, CHANGES, "page"])
def test_a_phone_in_the_dark_scrolls_only_down(console: Console, path: str) -> None:
    product = fill_with(["A lamp with quite a long name, as shops like them, in brushed brass"])
    console.page.set_viewport_size({"width": 390, "height": 844})
    console.page.emulate_media(color_scheme="dark")
    page = console.open(path if path != "page" else f"{PRODUCTS}{product.pk}/change/")
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    card = page.locator(".plot, .card").first
    if card.count():
        assert card.evaluate("one => getComputedStyle(one).backgroundColor") != "rgb(255, 255, 255)"


def test_the_command_of_the_first_start_is_copied(console: Console) -> None:
    console.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = console.open("/admin/")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "/api/v1/websites" in page.evaluate("navigator.clipboard.readText()")
