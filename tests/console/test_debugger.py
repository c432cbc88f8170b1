"""The extraction debugger and the page of reading again, as a real browser shows them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from crawling import parsing
from monitoring.models import Website
from tests.console.conftest import Console
from tests.crawling.conftest import page_files  # noqa: F401
from tests.factories.monitoring import ProductFactory, WebsiteFactory
from tests.factories.static import static_root  # noqa: F401
from tests.monitoring.api.test_reparse import crawl, misread

pytestmark = pytest.mark.usefixtures("page_files")
DEBUGGER = "/admin/monitoring/product/debugger/"
HOSTILE = """<title>x</title><script type="application/ld+json">{"@type": "Product", "name":
 "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e", "sku": "L-1", "offers": {"price": "20.00",
 "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}</script>"""


@pytest.fixture
def website() -> Website:
    return WebsiteFactory.create(active=True)


def test_a_pasted_page_is_explained_and_stays_text(console: Console) -> None:
    page = console.open("/admin/")
    page.get_by_role("link", name="Extraction debugger").first.click()
    page.fill("[name=url]", "https://shop.example/p/1")
    page.fill("[name=html]", HOSTILE)
    page.get_by_role("button", name="Read the page").click()
    expect(page.get_by_role("heading", name="A product")).to_be_visible()
    row = page.get_by_role("row", name="price").first
    expect(row).to_contain_text("20")
    expect(page.locator("td", has_text="<script>alert(1)</script>").first).to_be_visible()


def test_a_refused_address_is_said_at_its_field(console: Console) -> None:
    page = console.open(DEBUGGER)
    page.fill("[name=url]", "http://127.0.0.1/p")
    page.get_by_role("button", name="Read the page").click()
    expect(page.get_by_text("Use a public web address")).to_be_visible()


def test_the_stored_page_of_a_product_is_one_click_away(console: Console, website: Website) -> None:
    product = ProductFactory.create(website=website, approved=True)
    task = crawl(product, "20.00")
    page = console.open(f"/admin/monitoring/product/{product.pk}/change/")
    page.get_by_role("link", name="Open in the extraction debugger").click()
    expect(page.get_by_role("heading", name="A product")).to_be_visible()
    expect(page.locator("[name=url]")).to_have_value(product.original_url)
    console.open(f"/admin/crawling/crawltask/{task.pk}/change/")
    page.get_by_role("link", name="Open in the extraction debugger").click()
    expect(page.get_by_role("heading", name="A product")).to_be_visible()


def test_stored_pages_are_compared_and_then_read_again(console: Console, website: Website) -> None:
    product = ProductFactory.create(website=website, approved=True)
    crawl(product, "20.00")
    misread(product)
    page = console.open(f"/admin/monitoring/product/{product.pk}/change/")
    page.get_by_role("link", name="Read again with the parser of today").click()
    expect(page.get_by_text("1 would differ")).to_be_visible()
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_text("1 stored pages are read again.")).to_be_visible()
    assert parsing.run_parse_slice(1) == 1
    console.open(f"/admin/monitoring/website/{website.pk}/reparse/")
    expect(page.get_by_text("0 would differ")).to_be_visible()


def test_a_page_that_is_gone_is_said_so(console: Console, website: Website) -> None:
    product = ProductFactory.create(website=website, approved=True)
    page = console.open(f"{DEBUGGER}?product={product.pk}")
    expect(page.get_by_text("No page of it is stored")).to_be_visible()
    console.open(f"{DEBUGGER}?product=nonsense")
    expect(page.get_by_role("button", name="Read the page")).to_be_visible()
