from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.models import AuditEntry
from crawling.models import CrawlJob
from monitoring.models import FoundUrl, ParserHealth, Product, Website
from notifications.models import WebhookEndpoint
from tests.factories.accounts import ClientFactory, UserFactory
from tests.factories.crawling import JobFactory
from tests.factories.monitoring import (
    ChangeFactory,
    HistoryFactory,
    ProductFactory,
    WebsiteFactory,
)
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>'
ADMIN = "/admin/monitoring"
SHOP = "http://shop.localhost:8601/"


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def website_form(**changes: Any) -> dict[str, Any]:
    return {
        "base_url": SHOP,
        "seed_urls": "",
        "name": "",
        "kind": "shop",
        "crawl_frequency_minutes": 1440,
        "price_change_threshold_pct": "1.00",
        "price_change_threshold_abs": "",
        "retention_days": 90,
        "webhook_endpoint_url": "",
        "webhook_enabled": "on",
    } | changes


def press(browser: Browser, model: str, action: str, *rows: Any) -> str:
    chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(f"{ADMIN}/{model}/", chosen, follow=True).content.decode()


@pytest.mark.parametrize("model", ["website", "product", "candidate", "producthistory", "change"])
def test_lists_and_pages_open_and_escape_what_crawled_pages_say(
    browser: Browser, model: str
) -> None:
    website = WebsiteFactory.create(name=HOSTILE, active=True)
    product = ProductFactory.create(
        website=website,
        name=HOSTILE,
        sku=HOSTILE,
        brand=HOSTILE,
        description=HOSTILE,
        discovery_reason=HOSTILE,
        original_url="javascript:alert(1)",
    )
    history = HistoryFactory.create(
        product=product, price_changed=True, raw_crawl_data={"name": HOSTILE}
    )
    change = ChangeFactory.create(product=product, old=HOSTILE, rule=HOSTILE)
    rows = {"website": website, "producthistory": history, "change": change}
    row = rows.get(model, product)
    for page in (f"{ADMIN}/{model}/", f"{ADMIN}/{model}/{row.pk}/change/"):
        answer = browser.get(page)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert "alert(1)" in text
        assert "<script>alert(1)" not in text
        assert not re.search(r"href=[\"']javascript:alert", text)


@pytest.mark.parametrize(
    "page", ["periodictask", "crontabschedule", "intervalschedule", "taskresult"]
)
def test_the_screens_of_the_scheduler_open(browser: Browser, page: str) -> None:
    website = WebsiteFactory.create(name="Lamps", active=True)
    assert website.periodic_task
    app = "django_celery_results" if page == "taskresult" else "django_celery_beat"
    assert browser.get(f"/admin/{app}/{page}/").status_code == 200
    if page in ("periodictask", "crontabschedule"):
        task = website.periodic_task
        row = task if page == "periodictask" else task.crontab
        assert browser.get(f"/admin/{app}/{page}/{row.pk}/change/").status_code == 200


def test_every_link_of_the_sidebar_opens(browser: Browser) -> None:
    index = browser.get("/admin/").content.decode()
    links = set(re.findall(r'href="(/admin/\w+/\w+/)"', index))
    assert len(links) >= 20
    for link in links:
        assert browser.get(link).status_code == 200, link


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("model", ["website", "product", "candidate", "producthistory", "change"])
def test_a_long_list_asks_no_more_than_a_short_one_and_counts_nothing_big(
    browser: Browser, model: str, count: int
) -> None:
    for _ in range(count):
        product = ProductFactory.create()
        HistoryFactory.create(product=product, price_changed=True)
        ChangeFactory.create(product=product)
    browser.get(f"{ADMIN}/{model}/")
    with CaptureQueriesContext(connection) as queries:
        browser.get(f"{ADMIN}/{model}/")
    assert len(queries) <= 8
    if model != "website":
        assert not [q for q in queries if "COUNT(" in q["sql"]]


def test_an_operator_registers_a_shop_as_the_api_does(browser: Browser, settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    client = ClientFactory.create()
    form = website_form(
        client=client.pk,
        seed_urls=f"{SHOP}a\n{SHOP}b",
        webhook_endpoint_url="http://hooks.localhost:8602/",
    )
    assert browser.post(f"{ADMIN}/website/add/", form).status_code == 302
    website = Website.objects.get()
    assert website.seed_urls == [f"{SHOP}a", f"{SHOP}b"]
    assert website.name == "shop.localhost:8601"
    assert CrawlJob.objects.get().kind == "discovery"
    assert WebhookEndpoint.objects.get().website_id == website.pk
    assert AuditEntry.objects.get(verb="register").actor_kind == "operator"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"base_url": "http://10.0.0.1/"}, "Use a public web address"),
        ({"base_url": "shop"}, "starts with http://"),
        ({"base_url": "http://8.8.8.8/", "seed_urls": "http://8.8.4.4/"}, "Line 1: Seed URLs"),
        ({"base_url": "http://8.8.8.8/", "webhook_endpoint_url": "ftp://x"}, "https://"),
        ({"base_url": "http://8.8.8.8/", "retention_days": 1}, "greater than or equal to 30"),
    ],
)
def test_what_registration_refuses_is_said_in_the_form(
    browser: Browser, change: dict[str, Any], text: str
) -> None:
    form = website_form(client=ClientFactory.create().pk, **change)
    answer = browser.post(f"{ADMIN}/website/add/", form)
    assert answer.status_code == 200
    assert text in answer.content.decode()
    assert not Website.objects.exists()


def test_saving_a_website_changes_it_and_its_schedule(browser: Browser) -> None:
    website = WebsiteFactory.create(active=True)
    form = website_form(name="Renamed", crawl_frequency_minutes=360)
    page = f"{ADMIN}/website/{website.pk}/change/"
    assert browser.post(page, form).status_code == 302
    website.refresh_from_db()
    assert website.name == "Renamed"
    assert website.periodic_task
    assert website.periodic_task.crontab.hour.count(",") == 3
    assert AuditEntry.objects.get(verb="update").after["name"] == "Renamed"


def test_the_button_of_the_form_crawls(browser: Browser) -> None:
    website = WebsiteFactory.create(active=True)
    ProductFactory.create(website=website, approved=True)
    form = website_form(name=website.name) | {"monitoring_website_crawl_this": ""}
    browser.post(f"{ADMIN}/website/{website.pk}/change/", form)
    assert CrawlJob.objects.get().kind == "monitor"


def test_websites_are_paused_resumed_and_crawled_from_the_list(browser: Browser) -> None:
    website = WebsiteFactory.create(active=True)
    ProductFactory.create(website=website, approved=True)
    assert "1 paused" in press(browser, "website", "pause", website)
    assert "must be active" in press(browser, "website", "crawl_now", website)
    assert "1 resumed" in press(browser, "website", "resume", website)
    assert "1 being crawled" in press(browser, "website", "crawl_now", website)
    assert "1 being discovered" in press(browser, "website", "discover_now", website)
    assert CrawlJob.objects.count() == 2


def test_a_website_is_deleted_with_its_history(browser: Browser) -> None:
    website = WebsiteFactory.create()
    HistoryFactory.create(product=ProductFactory.create(website=website))
    JobFactory.create(website_id=website.pk, client=website.client)
    page = f"{ADMIN}/website/{website.pk}/delete/"
    assert "1" in browser.get(page).content.decode()
    assert browser.post(page, {"post": "yes"}).status_code == 302
    assert not Website.objects.exists()
    assert CrawlJob.objects.get().status == "cancelled"


@pytest.mark.parametrize("screen", ["candidate", "product"])
def test_candidates_are_approved_and_rejected(browser: Browser, screen: str) -> None:
    one, two = ProductFactory.create_batch(2, pending=True)
    assert "1 of 1 approved" in press(browser, screen, "approve", one)
    assert "1 of 1 rejected" in press(browser, screen, "reject", two)
    assert Product.objects.get(pk=one.pk).approval == "approved"
    assert Product.objects.get(pk=two.pk).approval == "rejected"
    assert AuditEntry.objects.get(verb="approve").actor_kind == "operator"


def test_a_full_website_is_an_error_message_and_no_crash(browser: Browser) -> None:
    client = ClientFactory.create(max_products_per_website=1)
    website = WebsiteFactory.create(client=client)
    rows = ProductFactory.create_batch(2, website=website)
    assert "max_products_per_website" in press(browser, "candidate", "approve", *rows)
    assert not Product.objects.filter(approval="approved").exists()


def test_the_review_queue_holds_only_what_waits(browser: Browser) -> None:
    ProductFactory.create(name="Waiting lamp", pending=True)
    ProductFactory.create(name="Watched lamp", approved=True)
    text = browser.get(f"{ADMIN}/candidate/").content.decode()
    assert "Waiting lamp" in text
    assert "Watched lamp" not in text


def test_history_is_found_by_product(browser: Browser) -> None:
    quiet = HistoryFactory.create()
    assert str(quiet.product_id) not in browser.get(f"{ADMIN}/producthistory/").content.decode()
    answer = browser.get(f"{ADMIN}/producthistory/?product={quiet.product_id}")
    assert f"/admin/monitoring/product/{quiet.product_id}/" in answer.content.decode()
    assert browser.get(f"{ADMIN}/producthistory/?product=nonsense").status_code == 200


def test_an_operator_without_rights_sees_and_does_nothing() -> None:
    browser = Browser()
    browser.force_login(UserFactory.create(is_staff=True))
    product = ProductFactory.create(pending=True)
    assert browser.get(f"{ADMIN}/product/").status_code == 403
    press(browser, "product", "approve", product)
    product.refresh_from_db()
    assert product.approval == "pending"


def test_the_rules_of_discovery_are_edited_in_the_console(
    browser: Browser, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    website = WebsiteFactory.create(base_url=SHOP)
    kept = ProductFactory.create(website=website, original_url=f"{SHOP}p/1", discovery_score=0.95)
    gone = ProductFactory.create(website=website, original_url=f"{SHOP}x/1", discovery_score=0.95)
    form = website_form(
        name=website.name,
        discovery_max_pages=50,
        auto_approve_score="0.9",
        auto_approve_include="/p/*",
        banned_patterns="/x/*\n/y/*",
    )
    answer = browser.post(f"{ADMIN}/website/{website.pk}/change/", form)
    assert answer.status_code == 302, answer.content.decode()
    website.refresh_from_db()
    assert website.auto_approve == {"min_score": 0.9, "include": ["/p/*"], "exclude": []}
    assert website.banned_patterns == ["/x/*", "/y/*"]
    assert website.discovery_max_pages == 50
    kept.refresh_from_db()
    gone.refresh_from_db()
    assert (kept.approval, gone.approval) == ("approved", "rejected")
    page = browser.get(f"{ADMIN}/website/{website.pk}/change/").content.decode()
    assert "/y/*" in page
    bad = browser.post(
        f"{ADMIN}/website/{website.pk}/change/", form | {"banned_patterns": "outlet"}
    )
    assert "Must start with / or *" in bad.content.decode()


def test_candidates_of_a_folder_are_banned_from_the_queue(browser: Browser) -> None:
    website = WebsiteFactory.create(base_url=SHOP)
    chosen, beside = (
        ProductFactory.create(website=website, original_url=f"{SHOP}gifts/{number}")
        for number in (1, 2)
    )
    other = ProductFactory.create(website=website, original_url=f"{SHOP}p/1")
    assert "2 rejected" in press(browser, "candidate", "ban", chosen)
    approvals = {p.pk: p.approval for p in Product.objects.all()}
    assert approvals == {chosen.pk: "rejected", beside.pk: "rejected", other.pk: "pending"}
    website.refresh_from_db()
    assert website.banned_patterns == ["/gifts/*"]


def test_the_queue_shows_possible_duplicates_and_filters_by_score(browser: Browser) -> None:
    first = ProductFactory.create(name="Original", discovery_score=0.5)
    ProductFactory.create(
        website=first.website, name="Copy", duplicate_of=first, duplicate_reason="Same SKU 12"
    )
    page = browser.get(f"{ADMIN}/candidate/?score_min=0.9").content.decode()
    assert "Same SKU 12" in page
    assert f'/product/{first.pk}/change/" class="text-link">Original' in page
    assert browser.get(f"{ADMIN}/candidate/?score_min=nonsense").status_code == 200


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (None, "waits for a worker"),
        ({"robots": "forbidden"}, "forbids the seed page"),
        ({"needs_javascript": True}, "a browser is needed"),
        ({"product_found": True, "method": "json-ld", "platform": "shopify"}, "json-ld"),
        ({"error": "the shop answered 404", "http_status": 404}, "the shop answered 404"),
    ],
)
def test_the_verdict_of_the_test_crawl_is_shown(
    browser: Browser, verdict: dict[str, Any] | None, text: str
) -> None:
    usual = {
        "http_status": 200,
        "robots": "allowed",
        "product_found": False,
        "method": "",
        "needs_javascript": False,
        "platform": "",
        "error": "",
    }
    website = WebsiteFactory.create(test_crawl=verdict and usual | verdict)
    assert text in browser.get(f"{ADMIN}/website/{website.pk}/change/").content.decode()


def test_found_urls_and_parser_health_have_a_screen(browser: Browser) -> None:
    website = WebsiteFactory.create()
    job = JobFactory.create(website_id=website.pk)
    row = FoundUrl.objects.create(
        website=website,
        url=f"{SHOP}{HOSTILE}",
        url_hash="x",
        job_id=job.pk,
        purpose="discover",
        source="link",
        state="robots",
        reason=HOSTILE,
        first_seen_at=job.created_at,
        last_seen_at=job.created_at,
    )
    ParserHealth.objects.create(host="shop.example", usual_pct=99, last_pct=40)
    for page in ("foundurl/", f"foundurl/{row.pk}/change/", "parserhealth/"):
        answer = browser.get(f"{ADMIN}/{page}")
        assert answer.status_code == 200
        assert "<script>alert(1)" not in answer.content.decode()


def test_a_schedule_that_is_run_now_crawls_its_website(browser: Browser) -> None:
    website = WebsiteFactory.create(active=True)
    ProductFactory.create(website=website, approved=True)
    chosen = {"action": "run_tasks", "_selected_action": [str(website.periodic_task_id)]}
    url = "/admin/django_celery_beat/periodictask/"
    assert "1 being crawled" in browser.post(url, chosen, follow=True).content.decode()
    assert CrawlJob.objects.get(website_id=website.pk).triggered_by == "manual"
