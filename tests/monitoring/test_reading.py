"""How pages are read: the domain's parser, the website's hints, and what was learnt."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from common.ids import uuid7
from crawling.fetching import Page
from crawling.leases import Claim
from crawling.models import Domain
from extraction.items import ProductItem
from monitoring.models import Website
from monitoring.reading import hints_for, reader_for
from tests.factories.monitoring import WebsiteFactory

pytestmark = pytest.mark.django_db
MARKED = """<title>Lamp</title><script type="application/ld+json">{{"@type": "Product",
 "name": "Lamp", "sku": "L-1", "offers": {{"price": "{price}", "priceCurrency": "EUR",
 "availability": "https://schema.org/InStock"}}}}</script>
<h1>Lamp</h1><div class="box"><span class="now-costs">{price} €</span></div>"""


@pytest.fixture
def domain() -> Domain:
    return Domain.objects.create(host="shop.example", base_url="https://shop.example")


@pytest.fixture
def website() -> Website:
    return WebsiteFactory.create(active=True, currency="CHF", locale="de-CH")


def page_of(domain: Domain, website: Website | None, body: str, number: int = 1) -> Page:
    url = f"https://shop.example/p/{number}"
    numbers: dict[str, Any] = dict.fromkeys(("fence", "depth", "retry_count", "max_retries"), 0)
    claim = Claim(
        id=uuid7(),
        job_id=uuid7(),
        domain_id=domain.pk,
        client_id=None,
        website_id=website.pk if website else None,
        object_id=None,
        purpose="product",
        url=url,
        url_hash="",
        **numbers,
    )
    return Page(claim, timezone.now(), status=200, url=url, body=body.encode())


def test_the_domain_names_the_parser_and_the_website_its_speech(
    domain: Domain, website: Website
) -> None:
    Domain.objects.update(parser_name="magento")
    page = page_of(domain, website, "<p>")
    hints = reader_for([page]).hints(page)
    assert (hints.parser_name, hints.currency, hints.locale) == ("magento", "CHF", "de-CH")


def test_a_batch_is_loaded_with_two_statements(
    domain: Domain, website: Website, django_assert_num_queries: Any
) -> None:
    pages = [page_of(domain, website, MARKED.format(price=n), n) for n in range(1, 9)]
    with django_assert_num_queries(2):
        reader = reader_for(pages)
        for page in pages:
            reader.read(page)
    with django_assert_num_queries(1):
        reader.keep_learned()


def test_places_that_agree_are_learnt_and_speak_when_the_data_is_gone(domain: Domain) -> None:
    for number in range(10, 15):
        page = page_of(domain, None, MARKED.format(price=f"{number}.00"), number)
        reader = reader_for([page])
        reader.read(page)
        reader.keep_learned()
    domain.refresh_from_db()
    (price,) = [place for place in domain.learned if place["name"] == "price"]
    assert (price["agreed"], price["disagreed"]) == (5, 0)
    assert "now-costs" in price["selector"]
    bare = '<h1>Lamp</h1><div class="box"><span class="now-costs">17,00 €</span></div>'
    page = page_of(domain, None, bare, 17)
    item = reader_for([page]).read(page)
    assert isinstance(item, ProductItem)
    assert item.price == Decimal(17)


def test_a_place_that_disagrees_is_counted_and_changes_nothing(domain: Domain) -> None:
    place = {"name": "price", "selector": "span.now-costs", "attribute": "", "agreed": 5}
    Domain.objects.update(learned=[place | {"disagreed": 0}])
    shown = '<p class="price">20.00 €</p><button>Add to cart</button><footer>'
    body = MARKED.format(price="20.00").replace("20.00 €", "5.00 €")
    body = body.replace('<div class="box">', f'{shown}<div class="box">')
    page = page_of(domain, None, body)
    reader = reader_for([page])
    item = reader.read(page)
    reader.keep_learned()
    domain.refresh_from_db()
    assert isinstance(item, ProductItem)
    assert item.price == 20
    (kept,) = [one for one in domain.learned if one["selector"] == "span.now-costs"]
    assert (kept["agreed"], kept["disagreed"]) == (5, 1)


def test_what_the_caller_names_counts_first(domain: Domain, website: Website) -> None:
    hints = hints_for(domain, website, currency="EUR", locale="")
    assert (hints.currency, hints.locale, hints.parser_name) == ("EUR", "de-CH", "generic")
