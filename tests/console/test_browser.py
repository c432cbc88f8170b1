"""The console and the API's pages as a real browser shows them."""

from __future__ import annotations

import re

import pytest
from django_celery_beat.models import CrontabSchedule
from playwright.sync_api import expect

from accounts import keys
from accounts.models import ApiKey
from monitoring.models import Product
from tests.console.conftest import Console
from tests.factories.accounts import ApiKeyFactory, ClientFactory, UserFactory
from tests.factories.crawling import CrawlErrorFactory, DomainProxyFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory, WebsiteFactory
from tests.factories.notifications import DeliveryFactory
from tests.factories.static import static_root  # noqa: F401

HOSTILE = '"><script>alert(1)</script>'
EMBLEM = "https://cdn.redoc.ly/redoc/logo-mini.svg"
QUEUE = "/admin/monitoring/candidate/"
WEBSITES = "/admin/monitoring/website/"


def fill_every_list(name: str = "Desk lamp") -> None:
    """A row or more for each list of the sidebar."""
    website = WebsiteFactory.create(name=name, active=True)
    product = ProductFactory.create(website=website, name=name, brand=name, approved=True)
    ProductFactory.create(website=website, name=name, discovery_reason=name, pending=True)
    HistoryFactory.create(product=product, price_changed=True)
    ChangeFactory.create(product=product, rule=name)
    CrawlErrorFactory.create(message=name)
    DomainProxyFactory.create(proxy__pool=name[:64])
    DeliveryFactory.create(endpoint__client=website.client)
    ApiKeyFactory.create(client=website.client, name=name)


def test_an_operator_logs_in(visitor: Console) -> None:
    operator = UserFactory.build(superuser=True, username="ana")
    operator.set_password("a-long-password-1")
    operator.save()
    page = visitor.open("/")
    page.fill("[name=username]", "ana")
    page.fill("[name=password]", "a-long-password-1")
    page.click("button[type=submit]")
    expect(page).to_have_url(f"{visitor.origin}/admin/")
    expect(page.get_by_role("link", name="Review queue").first).to_be_visible()


def test_a_candidate_is_approved_in_the_review_queue(console: Console) -> None:
    product = ProductFactory.create(name="Desk lamp", pending=True, website__active=True)
    other = ProductFactory.create(name="Floor lamp", pending=True, website=product.website)
    page = console.open(QUEUE)
    page.get_by_role("row", name="Desk lamp").locator("[name=_selected_action]").check()
    page.select_option("select[name=action]", "approve")
    page.click("button[name=index]")
    expect(page.get_by_text("1 of 1 approved.")).to_be_visible()
    expect(page.get_by_role("row", name="Floor lamp")).to_be_visible()
    expect(page.get_by_role("row", name="Desk lamp")).to_have_count(0)
    product.refresh_from_db()
    other.refresh_from_db()
    assert product.approval == Product.Approval.APPROVED
    assert other.approval == Product.Approval.PENDING


def test_a_schedule_is_edited_and_read_in_words(console: Console) -> None:
    website = WebsiteFactory.create(name="Lamps", active=True)
    mornings = CrontabSchedule.objects.create(minute="15", hour="6")
    page = console.open(f"{WEBSITES}{website.pk}/change/")
    page.locator("a[href*=periodictask]").last.click()
    page.select_option("[name=crontab]", str(mornings.pk))
    page.click("button[name=_save]")
    page.wait_for_url("**/periodictask/")
    console.open(WEBSITES)
    expect(page.get_by_role("row", name="Lamps")).to_contain_text("06:15")


def test_a_new_webhook_secret_is_shown_once(console: Console) -> None:
    client = ClientFactory.create()
    path = f"/admin/accounts/client/{client.pk}/change/"
    page = console.open(path)
    page.get_by_role("button", name="Rotate webhook secret").click()
    expect(page.get_by_text("shown only now")).to_be_visible()
    client.refresh_from_db()
    assert client.webhook_secret_current in page.inner_text("body")
    assert client.webhook_secret_current not in console.open(path).content()


def test_a_new_api_key_is_shown_once(console: Console) -> None:
    page = console.open("/admin/accounts/apikey/add/")
    for holder in page.locator("[name=holder][value=operator]").all():
        holder.check()
    page.fill("[name=name]", "warehouse")
    page.check("[name=scopes][value=read]")
    page.click("button[name=_save]")
    expect(page.get_by_text("shown only now")).to_be_visible()
    shown = re.search(keys.FORM, page.inner_text("body"))
    assert shown is not None
    key = ApiKey.objects.get(name="warehouse")
    assert keys.find(shown.group()) == key
    for path in ("", f"{key.pk}/change/"):
        assert shown.group() not in console.open(f"/admin/accounts/apikey/{path}").content()


def test_every_list_of_the_sidebar_opens(console: Console) -> None:
    fill_every_list()
    page = console.open("/admin/")
    links = page.locator("a[href^='/admin/']").evaluate_all("all => all.map(a => a.pathname)")
    lists = sorted({link for link in links if re.fullmatch(r"/admin/\w+/\w+/", link)})
    assert len(lists) >= 20
    for path in lists:
        expect(console.open(path).locator("#changelist")).to_be_visible()
        page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("model", ["product", "candidate", "website", "change"])
def test_what_a_crawled_page_says_is_text(console: Console, model: str) -> None:
    fill_every_list(HOSTILE)
    page = console.open(f"/admin/monitoring/{model}/")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    page.locator("#result_list a[href*='/change/']").first.click()
    expect(page.get_by_text(HOSTILE).first).to_be_attached()


@pytest.mark.parametrize("path", [WEBSITES, QUEUE])
def test_a_phone_scrolls_the_page_only_down(console: Console, path: str) -> None:
    fill_every_list("A lamp with quite a long name, as shops like them, in brushed brass")
    console.page.set_viewport_size({"width": 390, "height": 844})
    page = console.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_console_goes_dark(console: Console) -> None:
    fill_every_list()
    console.page.emulate_media(color_scheme="dark")
    page = console.open(WEBSITES)
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour != "rgb(255, 255, 255)"


def test_the_page_to_try_the_api_draws_itself(visitor: Console) -> None:
    page = visitor.open("/api/docs")
    expect(page.locator(".opblock").first).to_be_visible()
    page.wait_for_load_state("networkidle")


def test_the_page_to_read_the_api_draws_itself(visitor: Console) -> None:
    """Redoc wants its maker's emblem; the page's policy stops that before anything leaves."""
    with visitor.page.expect_event("requestfailed", lambda asked: asked.url == EMBLEM) as stopped:
        page = visitor.open("/api/redoc")
    assert stopped.value.failure == "csp"
    expect(page.locator("[data-section-id]").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    visitor.troubles = [trouble for trouble in visitor.troubles if EMBLEM not in trouble]


def test_a_list_of_proxies_is_pasted_looked_at_and_imported(console: Console) -> None:
    page = console.open("/admin/crawling/proxy/")
    page.get_by_role("link", name="Import a list").click()
    page.fill("[name=text]", "93.184.216.34:8000\nsocks5://ann:secret@93.184.216.35:1080")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("2 would be imported")).to_be_visible()
    expect(page.get_by_role("row", name="93.184.216.35")).to_contain_text("New")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("2 imported")).to_be_visible()
    expect(page.get_by_role("row", name="socks5://93.184.216.35:1080")).to_be_visible()
