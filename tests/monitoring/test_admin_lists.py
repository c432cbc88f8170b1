"""What the lists of the console do for many rows at once, and what they cost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounts.models import AuditEntry
from crawling.models import CrawlJob, CrawlTask
from monitoring.models import AlertRule, Product, Website
from tests.factories.accounts import ClientFactory, UserFactory
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory, WebsiteFactory
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
ADMIN = "/admin/monitoring"
SHOP = "http://shop.localhost:8601/"
LISTS = {
    "website": f"{ADMIN}/website/",
    "product": f"{ADMIN}/product/",
    "candidate": f"{ADMIN}/candidate/",
    "change": f"{ADMIN}/change/",
    "job": "/admin/crawling/crawljob/",
}


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


@pytest.fixture
def looker() -> Browser:
    """Somebody who may look at products and nothing else."""
    from django.contrib.auth.models import Permission

    browser, user = Browser(), UserFactory.create(is_staff=True)
    names = ["view_product", "view_candidate", "view_change", "view_website"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    browser.force_login(user)
    return browser


def fill(count: int) -> None:
    for number in range(count):
        product = ProductFactory.create(approval="approved" if number % 2 else "pending")
        HistoryFactory.create(product=product)
        ChangeFactory.create(product=product)
        job = JobFactory.create(website_id=product.website_id, running=True)
        TaskFactory.create(job=job)


def press(browser: Browser, path: str, action: str, *rows: Any) -> str:
    chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(path, chosen, follow=True).content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_a_long_list_asks_as_often_as_a_short_one(browser: Browser, name: str) -> None:
    costs = []
    for count in (5, 45):
        fill(count)
        browser.get(LISTS[name])
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(LISTS[name]).status_code == 200
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 15, costs


@pytest.mark.parametrize("name", LISTS)
def test_a_list_can_be_taken_along_and_holds_no_formula(browser: Browser, name: str) -> None:
    website = WebsiteFactory.create(name="=1+1", active=True)
    product = ProductFactory.create(website=website, name="@SUM(A1)", pending=True)
    ChangeFactory.create(product=product)
    JobFactory.create(client__name="+49")
    answer = browser.get(LISTS[name], {"_export": "csv"})
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert len(text.splitlines()) == 2
    assert '"=' not in text
    assert '"@' not in text
    assert '"+' not in text
    assert "'" in text


def test_the_list_of_products_shows_how_prices_moved(browser: Browser) -> None:
    product = ProductFactory.create(approved=True, current_price=Decimal(75))
    for days, price in ((29, "100"), (2, "50")):
        at = timezone.now() - dt.timedelta(days=days)
        HistoryFactory.create(product=product, price=Decimal(price), crawl_timestamp=at)
    text = browser.get(LISTS["product"]).content.decode()
    assert "+50.0\u00a0%" in text
    assert "-25.0\u00a0%" in text
    assert 'class="spark' in text


def test_products_are_paused_resumed_and_crawled_from_the_list(browser: Browser) -> None:
    product = ProductFactory.create(approved=True, website__active=True)
    waiting = ProductFactory.create(pending=True)
    assert "1 of 1 paused" in press(browser, LISTS["product"], "pause", product)
    assert not Product.objects.get(pk=product.pk).is_active
    assert "Paused" in browser.get(LISTS["product"]).content.decode()
    assert "1 of 1 resumed" in press(browser, LISTS["product"], "resume", product)
    text = press(browser, LISTS["product"], "crawl_now", product, waiting)
    assert "1 of 2 being crawled" in text
    assert "is not watched: approve it" in text
    assert CrawlTask.objects.get().object_id == product.pk
    assert set(AuditEntry.objects.values_list("verb", flat=True)) == {"update", "crawl"}


def test_jobs_are_paused_resumed_retried_and_cancelled_from_the_list(browser: Browser) -> None:
    job = JobFactory.create(running=True, total=2, processed=1, errors=1)
    TaskFactory.create(job=job, status="failed", error_category="timeout")
    TaskFactory.create(job=job)
    assert "1 paused" in press(browser, LISTS["job"], "pause", job)
    assert "1 resumed" in press(browser, LISTS["job"], "resume", job)
    assert "1 tried again" in press(browser, LISTS["job"], "retry", job)
    assert CrawlTask.objects.filter(job=job, status="pending").count() == 2
    assert "1 cancelled" in press(browser, LISTS["job"], "cancel", job)
    assert CrawlJob.objects.get().status == "cancelled"
    assert "cannot be" in press(browser, LISTS["job"], "pause", job)


def test_all_of_a_score_are_shown_and_then_approved(browser: Browser) -> None:
    website = WebsiteFactory.create()
    good = ProductFactory.create(website=website, name="Good lamp", discovery_score=0.95)
    twin = ProductFactory.create(website=website, duplicate_of=good, discovery_score=0.95)
    weak = ProductFactory.create(website=website, discovery_score=0.5)
    page = f"{ADMIN}/candidate/many/"
    assert (
        "1 candidate would be approved" in browser.get(page, {"score_min": "0.9"}).content.decode()
    )
    assert Product.objects.filter(approval="approved").count() == 0
    answer = browser.post(page, {"score_min": "0.9"}, follow=True)
    assert "1 of 1 approved." in answer.content.decode()
    found = {row.pk: row.approval for row in Product.objects.all()}
    assert found == {good.pk: "approved", twin.pk: "pending", weak.pk: "pending"}


def test_a_pattern_is_banned_for_one_website(browser: Browser) -> None:
    website = WebsiteFactory.create(base_url=SHOP)
    gone = ProductFactory.create(website=website, original_url=f"{SHOP}outlet/1")
    ProductFactory.create(website=website, original_url=f"{SHOP}p/1")
    page, asked = f"{ADMIN}/candidate/many/", {"url_pattern": "/outlet/*"}
    assert "choose it" in browser.get(page, asked).content.decode()
    asked["website"] = str(website.pk)
    assert "1 candidate would be rejected" in browser.get(page, asked).content.decode()
    assert "1 rejected" in browser.post(page, asked, follow=True).content.decode()
    assert Product.objects.get(approval="rejected") == gone
    website.refresh_from_db()
    assert website.banned_patterns == ["/outlet/*"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"score_min": "2"}, "less than or equal to 1"),
        ({"score_min": "much"}, "Enter a number"),
        ({"score_min": "", "url_pattern": ""}, "Give either a score"),
        ({"url_pattern": "outlet", "website": "?"}, "Must start with / or *"),
    ],
)
def test_what_means_no_candidates_is_said_and_changes_nothing(
    browser: Browser, asked: dict[str, str], said: str
) -> None:
    product = ProductFactory.create()
    if "website" in asked:
        asked["website"] = str(product.website_id)
    for ask in (browser.get, browser.post):
        assert said in ask(f"{ADMIN}/candidate/many/", asked).content.decode()
    assert Product.objects.get().approval == "pending"


def test_a_target_is_set_on_the_page_of_a_product(browser: Browser) -> None:
    product = ProductFactory.create(approved=True)
    page = f"{ADMIN}/product/{product.pk}/"
    said = browser.post(f"{page}target/", {"kind": "target_below", "value": "15"}, follow=True)
    assert "The client is told: target below 15" in said.content.decode()
    rule = AlertRule.objects.get()
    assert (rule.product_id, rule.kind, rule.value) == (product.pk, "target_below", Decimal(15))
    for bad in ("-1", "cheap", ""):
        said = browser.post(f"{page}target/", {"kind": "target_below", "value": bad}, follow=True)
        assert "A target is a price above 0." in said.content.decode()
    assert AlertRule.objects.count() == 1
    assert browser.get(f"{page}target/").status_code == 403


def test_a_product_is_delisted_paused_and_crawled_on_its_page(browser: Browser) -> None:
    product = ProductFactory.create(approved=True, website__active=True)
    page = f"{ADMIN}/product/{product.pk}/change/"
    for name in ("crawl_this", "pause_this", "resume_this", "delist_this"):
        assert (
            f"monitoring_product_{name}" in browser.get(page).content.decode() or "resume" in name
        )
        browser.post(page, {f"monitoring_product_{name}": ""})
    product.refresh_from_db()
    assert (product.is_active, product.delisted_at is not None) == (False, True)
    assert CrawlJob.objects.count() == 1
    assert "monitoring_product_delist_this" not in browser.get(page).content.decode()


@pytest.mark.parametrize("days", ["1", "365", "7000", "x", "-1"])
def test_any_range_draws_a_chart(browser: Browser, days: str) -> None:
    product = ProductFactory.create(approved=True)
    answer = browser.get(f"{ADMIN}/product/{product.pk}/change/", {"days": days})
    assert answer.status_code == 200
    assert 'class="price-chart"' in answer.content.decode()


def test_a_list_of_websites_is_tried_and_then_imported(
    browser: Browser, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    client = ClientFactory.create()
    text = f"base_url,name\n{SHOP},Lamps\nhttp://10.0.0.1/,Inside\n"
    page = f"{ADMIN}/website/import/"
    answer = browser.post(page, {"client": client.pk, "text": text, "preview": ""})
    said = answer.content.decode()
    assert "1 would be registered, 1 refused" in said
    assert "Use a public web address" in said
    assert not Website.objects.exists()
    upload = SimpleUploadedFile("shops.csv", text.encode(), "text/csv")
    answer = browser.post(page, {"client": client.pk, "file": upload, "import": ""})
    assert "1 registered, 1 refused" in answer.content.decode()
    assert Website.objects.get().name == "Lamps"
    assert AuditEntry.objects.get(verb="register").actor_kind == "operator"


def test_a_list_of_products_is_imported_and_watched(browser: Browser, settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    website = WebsiteFactory.create(base_url=SHOP)
    asked = {"client": website.client_id, "text": f"{SHOP}p/1\n{SHOP}p/2", "approve": "on"}
    page = f"{ADMIN}/product/import/"
    assert "2 would be watched" in browser.post(page, asked | {"preview": ""}).content.decode()
    assert not Product.objects.exists()
    answer = browser.post(page, asked | {"import": ""}, follow=True)
    assert "2 watched" in answer.content.decode()
    assert Product.objects.filter(approval="approved").count() == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": ""}, "Paste a list, or choose a file."),
        ({"text": "name,kind\nx,y"}, "base_url is missing"),
        ({"file": SimpleUploadedFile("x.csv", b"\xff\xfe\x00")}, "Not UTF-8"),
        ({"text": "\n".join(f"https://shop{n}.example/" for n in range(101))}, "At most 100"),
        ({"client": "nobody", "text": "x"}, "not a valid"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_as_a_whole(
    browser: Browser, asked: dict[str, Any], said: str
) -> None:
    form = {"client": ClientFactory.create().pk, "import": ""} | asked
    answer = browser.post(f"{ADMIN}/website/import/", form)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not Website.objects.exists()


def test_a_dry_run_of_a_website_opens_the_debugger_at_a_page_of_it(browser: Browser) -> None:
    product = ProductFactory.create(approved=True, website__active=True)
    said = press(browser, LISTS["website"], "dry_run", product.website)
    assert product.original_url in said
    assert "nothing of it is kept" in said
    two = press(browser, LISTS["website"], "dry_run", product.website, WebsiteFactory.create())
    assert "Choose one website" in two


def test_who_may_only_look_changes_nothing(looker: Browser) -> None:
    product = ProductFactory.create(approved=True)
    waiting = ProductFactory.create(discovery_score=0.95)
    page = f"{ADMIN}/product/{product.pk}/"
    assert looker.get(f"{page}change/").status_code == 200
    refused = {
        f"{page}target/": {"kind": "target_below", "value": "1"},
        f"{ADMIN}/candidate/many/": {"score_min": "0.1"},
        f"{ADMIN}/product/import/": {"text": "x"},
        f"{ADMIN}/website/import/": {"text": "x"},
    }
    for path, form in refused.items():
        assert looker.post(path, form).status_code == 403, path
    looker.post(f"{page}change/", {"monitoring_product_delist_this": ""})
    press(looker, LISTS["product"], "pause", product)
    press(looker, LISTS["candidate"], "approve", waiting)
    product.refresh_from_db()
    waiting.refresh_from_db()
    assert (product.is_active, product.delisted_at) == (True, None)
    assert waiting.approval == "pending"
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    "asked", ["oak desk", "S-77", "4006381333931", "https://shop.example/oak", "des"]
)
def test_a_product_is_found_by_words_numbers_and_address(browser: Browser, asked: str) -> None:
    ProductFactory.create(
        name="Oak desk", sku="S-77", gtin="4006381333931", original_url="https://shop.example/oak"
    )
    ProductFactory.create(name="Floor lamp", original_url="https://shop.example/lamp")
    text = browser.get(LISTS["product"], {"q": asked}).content.decode()
    assert "Oak desk" in text
    assert "Floor lamp" not in text


@pytest.mark.parametrize("asked", ["http://", "&|!:*", "'", "\u202e", "x" * 3000])
def test_what_nobody_would_search_for_finds_nothing(browser: Browser, asked: str) -> None:
    ProductFactory.create(name="Oak desk")
    answer = browser.get(LISTS["product"], {"q": asked})
    assert answer.status_code == 200
    assert "Oak desk" not in answer.content.decode()
