"""POST /preview: what a page would be read as; nothing is stored."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from common.urls import host_of
from crawling.models import CrawlTask, Domain, StoredPage
from monitoring.models import Product
from tests.crawling.conftest import loopback  # noqa: F401
from tests.factories.accounts import api_for
from tests.shop.fixtures import shop  # noqa: F401
from tests.shop.server import Robots, ScriptedShop

pytestmark = pytest.mark.django_db
PREVIEW = "/api/v1/preview"
JSON_LD = """<html><head><title>Lamp</title><script type="application/ld+json">
{"@type": "Product", "name": "Lamp", "sku": "L-1", "offers": {"price": "19.90",
 "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}</script></head>
<body><h1>Lamp</h1><p class="price">19,90 €</p><button>Add to cart</button></body></html>"""
URL = "https://shop.example/p/lamp"


@pytest.fixture
def reader(client_row: Any) -> Any:
    return api_for(client_row, ["read"])


def preview(api: Any, **body: Any) -> Any:
    return api.post(PREVIEW, body)


def test_html_is_read_with_the_origin_of_each_value(reader: Any) -> None:
    answer = preview(reader, url=URL, html=JSON_LD)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["outcome"], found["method"]) == ("product", "json-ld")
    assert found["why"]
    price = found["fields"]["price"]
    assert (price["value"], price["source"], price["raw"]) == ("19.90", "json-ld", "19.90")
    assert found["fields"]["currency"]["value"] == "EUR"
    assert found["fields"]["stock"]["value"] == "in_stock"
    assert found["fetch"] is None
    assert found["js_needed"] == "no"


def test_a_page_without_a_product_says_what_it_is(reader: Any) -> None:
    found = preview(reader, url=URL, html="<p> </p>").json()
    assert found["outcome"] == "no_product"
    assert found["page_kind"] not in ("", "product")
    assert found["fields"] == {}


def test_sent_text_is_utf_8_whatever_the_page_declares(reader: Any) -> None:
    html = JSON_LD.replace("<title>", '<meta charset="iso-8859-1"><title>').replace("Lamp", "Größe")
    found = preview(reader, url=URL, html=html).json()
    assert found["fields"]["name"]["value"] == "Größe"


@pytest.mark.usefixtures("loopback")
@pytest.mark.django_db(transaction=True)
class TestFetching:
    def test_a_page_is_fetched_and_nothing_is_stored(
        self,
        reader: Any,
        shop: ScriptedShop,  # noqa: F811
    ) -> None:
        url = shop.product_urls[0]
        answer = preview(reader, url=url)
        assert answer.status_code == 200, answer.json()
        found = answer.json()
        assert found["outcome"] == "product"
        assert found["fetch"]["status"] == 200
        assert found["fetch"]["robots"] == "allowed"
        assert not CrawlTask.objects.exists()
        assert not StoredPage.objects.exists()
        assert not Product.objects.exists()
        domain = Domain.objects.get(host=host_of(url))
        assert domain.leased_until is None
        assert domain.ledger.count() == 2

    def test_robots_are_obeyed(self, reader: Any, shop: ScriptedShop) -> None:  # noqa: F811
        shop.robots = Robots(body="User-agent: *\nDisallow: /")
        found = preview(reader, url=shop.product_urls[0]).json()
        assert found["outcome"] == "not_fetched"
        assert found["fetch"]["robots"] == "forbidden"
        assert found["fetch"]["error_category"] == "robots"
        assert [hit.path for hit in shop.log] == ["/robots.txt"]

    def test_a_missing_page_is_an_answer(self, reader: Any, shop: ScriptedShop) -> None:  # noqa: F811
        found = preview(reader, url=f"{shop.url.rstrip('/')}/status/404").json()
        assert found["outcome"] == "not_fetched"
        assert found["fetch"]["status"] == 404

    def test_a_blocked_domain_is_left_alone(self, reader: Any, shop: ScriptedShop) -> None:  # noqa: F811
        Domain.objects.create(host=host_of(shop.url), base_url=shop.url, is_blocked=True)
        answer = preview(reader, url=shop.product_urls[0])
        assert (answer.status_code, answer.json()["code"]) == (403, "DOMAIN_BLOCKED")
        assert not shop.log

    def test_an_open_circuit_is_left_alone(self, reader: Any, shop: ScriptedShop) -> None:  # noqa: F811
        later = timezone.now() + dt.timedelta(minutes=5)
        Domain.objects.create(
            host=host_of(shop.url),
            base_url=shop.url,
            breaker_state="open",
            next_allowed_at=later,
        )
        answer = preview(reader, url=shop.product_urls[0])
        assert (answer.status_code, answer.json()["code"]) == (503, "CIRCUIT_OPEN")
        assert "Retry-After" in answer
        assert not shop.log

    def test_a_shop_that_is_being_crawled_is_not_asked_beside(
        self,
        reader: Any,
        shop: ScriptedShop,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("crawling.looking.PATIENCE_SECONDS", 0)
        Domain.objects.create(
            host=host_of(shop.url),
            base_url=shop.url,
            leased_by="a slice",
            leased_until=timezone.now() + dt.timedelta(minutes=1),
        )
        found = preview(reader, url=shop.product_urls[0]).json()
        assert found["outcome"] == "not_fetched"
        assert "try again later" in found["why"]
        assert not shop.log


def test_private_addresses_are_refused(reader: Any) -> None:
    answer = preview(reader, url="http://127.0.0.1/p")
    assert (answer.status_code, answer.json()["code"]) == (403, "URL_BLOCKED")
    assert not Domain.objects.exists()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VALIDATION_ERROR"),
        ({"url": "no address"}, "URL_INVALID"),
        ({"url": "no address", "html": "<p>"}, "URL_INVALID"),
        ({"url": URL, "html": "<p>", "currency": "euro"}, "VALIDATION_ERROR"),
        ({"url": URL, "html": "<p>", "locale": "?"}, "VALIDATION_ERROR"),
        ({"url": URL, "html": "<p>", "parser_name": "magic"}, "VALIDATION_ERROR"),
        ({"url": URL, "html": "x" * 5_000_001}, "VALIDATION_ERROR"),
        ({"url": URL, "htlm": "<p>"}, "VALIDATION_ERROR"),
    ],
)
def test_bad_input_is_refused(reader: Any, body: dict[str, Any], code: str) -> None:
    answer = reader.post(PREVIEW, body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_key_is_needed(client: Any) -> None:
    assert client.post(PREVIEW, {}, content_type="application/json").status_code == 401
