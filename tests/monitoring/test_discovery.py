"""Discovery through the crawler, against the scripted shop."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from accounts.audit import SYSTEM
from accounts.models import Client
from common.urls import normalize_url, url_hash
from crawling.models import CrawlJob, LedgerEntry
from crawling.slices import run_slice
from monitoring import approval, websites
from monitoring.models import FoundUrl, Product, Website
from monitoring.registration import Registration, register_website
from notifications.models import Event
from tests.crawling.conftest import loopback  # noqa: F401
from tests.factories.accounts import ClientFactory
from tests.shop.server import Robots, ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


@pytest.fixture
def client_row() -> Client:
    return ClientFactory.create()


def discovered(client: Client, shop: ScriptedShop, **wanted: Any) -> Website:
    base = {"base_url": shop.url, **wanted}
    website = register_website(client, Registration(**base), actor=SYSTEM)
    run_slice(15)
    return Website.objects.get(pk=website.pk)


def again(website: Website, **options: Any) -> CrawlJob:
    job = websites.discover_now(website, actor=SYSTEM, **options)
    run_slice(15)
    job.refresh_from_db()
    return job


def found(website: Website, url: str) -> FoundUrl:
    return website.found_urls.get(url_hash=url_hash(normalize_url(url)))


def told(kind: str) -> dict[str, Any]:
    event = Event.objects.filter(type=kind).latest("sequence")
    data: dict[str, Any] = json.loads(event.body)["data"]["object"]
    return data


def pages_asked(shop: ScriptedShop) -> list[str]:
    return [hit.path for hit in shop.log if hit.path != "/robots.txt"]


def test_the_verdict_of_the_test_crawl_is_kept_and_told(
    client_row: Client, shop: ScriptedShop
) -> None:
    website = discovered(client_row, shop)
    verdict = website.test_crawl
    assert verdict
    assert verdict["http_status"] == 200
    assert (verdict["robots"], verdict["address"]) == ("allowed", "allowed")
    assert verdict["product_found"]
    assert verdict["method"] == "json-ld"
    assert verdict["needs_javascript"] is False
    assert told("website.discovered")["test_crawl"] == verdict


def test_a_shop_built_by_scripts_is_recognised(client_row: Client, shop: ScriptedShop) -> None:
    shop.robots = Robots(body="")
    website = discovered(client_row, shop, seed_urls=[f"{shop.url}/app"], discovery_max_pages=3)
    assert website.test_crawl
    assert website.test_crawl["needs_javascript"] is True
    candidate = website.products.get(original_url=f"{shop.url}/app/p/1234")
    assert "needs JavaScript" in candidate.discovery_reason
    assert candidate.discovery_score < 0.5


def test_a_seed_page_that_is_not_there_says_so(client_row: Client, shop: ScriptedShop) -> None:
    website = discovered(client_row, shop, seed_urls=[f"{shop.url}/status/404"])
    assert website.test_crawl
    assert website.test_crawl["error"] == "the shop answered 404"
    # The sitemap leads to the products all the same.
    assert website.products.count() == len(shop.slugs)


def test_a_forbidden_seed_page_is_not_asked_for(client_row: Client, shop: ScriptedShop) -> None:
    shop.robots = Robots(body="User-agent: *\nDisallow: /\n")
    website = discovered(client_row, shop)
    assert website.test_crawl
    assert website.test_crawl["robots"] == "forbidden"
    assert pages_asked(shop) == []
    assert found(website, shop.url).state == "robots"


def test_sitemaps_that_robots_names_are_followed_into_packed_files(
    client_row: Client, shop: ScriptedShop
) -> None:
    shop.robots = Robots(body=f"Sitemap: {shop.url}/sitemap_index.xml\n")
    website = discovered(client_row, shop, seed_urls=[f"{shop.url}/about"])
    again(website, sources=["sitemap"])
    assert website.products.count() == len(shop.slugs)
    asked = set(pages_asked(shop))
    assert {"/sitemap_index.xml", "/sitemap_products.xml.gz"} <= asked
    assert "/sitemap_deeper.xml" not in asked
    assert found(website, f"{shop.url}/sitemap_deeper.xml").state == "too_deep"
    page = found(website, shop.product_url("desk-lamp"))
    assert page.lastmod is not None


def test_a_sitemap_with_a_dtd_is_refused_and_the_links_are_followed(
    client_row: Client, shop: ScriptedShop
) -> None:
    shop.robots = Robots(body=f"Sitemap: {shop.url}/sitemap_doctype.xml\n")
    website = discovered(client_row, shop)
    sitemap = found(website, f"{shop.url}/sitemap_doctype.xml")
    assert sitemap.state == "failed"
    assert "DTD" in sitemap.reason
    assert website.products.count() == len(shop.slugs)


@pytest.mark.parametrize("pages", [1, 4, 10])
def test_exactly_as_many_pages_are_read_as_allowed(
    client_row: Client, shop: ScriptedShop, pages: int
) -> None:
    website = discovered(client_row, shop, discovery_max_pages=pages)
    assert len(pages_asked(shop)) == pages
    left = website.found_urls.filter(state="over_limit").first()
    assert left
    assert f"limit of {pages} pages" in left.reason
    assert told("website.discovered")["is_complete"] is False


def test_the_best_pages_come_first(client_row: Client, shop: ScriptedShop) -> None:
    discovered(client_row, shop, discovery_max_pages=8)
    assert not set(pages_asked(shop)) & {"/about", "/imprint", "/shipping"}


def test_every_page_says_why_it_was_read_or_not(client_row: Client, shop: ScriptedShop) -> None:
    shop.robots = Robots(
        body=f"User-agent: *\nDisallow: /shipping\nSitemap: {shop.url}/sitemap.xml"
    )
    website = discovered(client_row, shop, banned_patterns=["/category/kitchen*"])
    assert found(website, shop.product_url("desk-lamp")).state == "product"
    assert found(website, f"{shop.url}/about").state == "no_product"
    assert found(website, f"{shop.url}/shipping").state == "robots"
    assert found(website, f"{shop.url}/category/kitchen").state == "banned"
    assert not website.found_urls.filter(state__in=["waiting", "asked"]).exists()


@pytest.mark.parametrize("platform", ["shopify", "woocommerce"])
def test_the_shops_own_list_saves_reading_its_pages(
    client_row: Client, shop: ScriptedShop, platform: str
) -> None:
    shop.platforms.platform = platform
    website = discovered(client_row, shop)
    assert website.test_crawl
    assert website.test_crawl["platform"] == platform
    listed = website.products.filter(extraction_method=f"{platform}-feed")
    assert listed.count() >= len(shop.slugs) - 5
    lamp = website.products.get(original_url=shop.product_url("desk-lamp"))
    assert str(lamp.current_price) == "39.9000"
    assert len([path for path in pages_asked(shop) if path.startswith("/products/")]) < 5


def test_every_request_is_in_the_ledger(client_row: Client, shop: ScriptedShop) -> None:
    discovered(client_row, shop)
    assert LedgerEntry.objects.count() == len(shop.log)


def test_discovery_again_finds_what_is_new_and_what_vanished(
    client_row: Client, shop: ScriptedShop
) -> None:
    shop.remove("wall-clock")
    website = discovered(client_row, shop)
    lamp = website.products.get(original_url=shop.product_url("desk-lamp"))
    approval.reject([lamp.pk], actor=SYSTEM)
    shop.restore("wall-clock")
    shop.remove("chef-knife")
    shop.forget()
    again(website)
    news = told("website.discovered")
    assert (news["new"], news["vanished"]) == (1, 1)
    knife = website.products.get(original_url=shop.product_url("chef-knife"))
    assert knife.vanished_at is not None
    lamp.refresh_from_db()
    assert (lamp.approval, lamp.vanished_at) == ("rejected", None)
    # What is a product already is not read again.
    assert "/products/desk-lamp" not in pages_asked(shop)
    shop.restore("chef-knife")
    again(website)
    knife.refresh_from_db()
    assert knife.vanished_at is None


def test_a_short_look_says_nothing_about_what_vanished(
    client_row: Client, shop: ScriptedShop
) -> None:
    website = discovered(client_row, shop)
    again(website, max_pages=1)
    assert told("website.discovered")["vanished"] == 0
    assert not website.products.filter(vanished_at__isnull=False).exists()


def test_a_rule_approves_and_the_website_becomes_active(
    client_row: Client, shop: ScriptedShop
) -> None:
    rule = {"min_score": 0.9, "exclude": ["*/desk-*"]}
    website = discovered(client_row, shop, auto_approve=rule)
    assert website.status == "active"
    pending = website.products.filter(approval="pending")
    assert pending.filter(original_url__contains="desk-lamp").exists()
    assert website.approved_product_count == website.products.count() - pending.count() > 0
    assert told("website.discovered")["approved_by_rule"] == website.approved_product_count


def test_a_rule_stops_at_the_quota(client_row: Client, shop: ScriptedShop) -> None:
    client_row.max_products_per_website = 2
    client_row.save()
    website = discovered(client_row, shop, auto_approve={"min_score": 0.5})
    assert website.approved_product_count == 2


def test_folders_that_hold_products_stand_for_pages_beyond_the_limit(
    client_row: Client, shop: ScriptedShop, settings: Settings
) -> None:
    from monitoring import found_urls

    settings.DISCOVERY_MAX_PAGES = 9
    website = discovered(client_row, shop)
    guessed = website.products.filter(extraction_method="url")
    assert website.products.count() == len(shop.slugs)
    assert guessed.exists()
    assert all("URL pattern /products/" in one.discovery_reason for one in guessed)
    assert len(pages_asked(shop)) == 9
    assert found_urls.State.LISTED in website.found_urls.values_list("state", flat=True)


def test_one_product_under_two_addresses_is_one_candidate(
    client_row: Client, shop: ScriptedShop
) -> None:
    base = shop.product_url("desk-lamp")
    seeds = [base, f"{base}?colour=red"]
    website = discovered(client_row, shop, seed_urls=seeds, discovery_max_pages=2)
    assert website.products.count() == 1
    states = {found(website, seed).state for seed in seeds}
    assert states == {"product", "duplicate"}


def test_the_same_gtin_elsewhere_is_a_possible_duplicate(
    client_row: Client, shop: ScriptedShop
) -> None:
    lamp = shop.catalogue.get("desk-lamp")
    assert lamp
    shop.catalogue._put(replace(lamp, slug="lamp-again"))
    website = discovered(client_row, shop)
    twin = website.products.exclude(duplicate_of=None).get()
    assert twin.duplicate_of
    assert {twin.original_url, twin.duplicate_of.original_url} == {
        shop.product_url("desk-lamp"),
        shop.product_url("lamp-again"),
    }
    assert "GTIN" in twin.duplicate_reason


def test_a_website_deleted_in_the_middle_leaves_nothing_behind(
    client_row: Client, shop: ScriptedShop
) -> None:
    website = register_website(client_row, Registration(base_url=shop.url), actor=SYSTEM)
    from crawling import leases
    from tests.crawling.work import claim_all

    claims = claim_all()
    websites.delete_website(website, actor=SYSTEM)
    from django.utils import timezone

    from crawling.fetching import Page
    from crawling.handover import hand_over

    body = b"<html><a href='/products/desk-lamp'>x</a></html>"
    late = [Page(c, timezone.now(), status=200, url=c.url, body=body) for c in claims]
    assert hand_over(late) == 0
    assert isinstance(claims[0], leases.Claim)
    assert not Product.objects.exists()
    assert not FoundUrl.objects.exists()
    assert not CrawlJob.objects.live().exists()
