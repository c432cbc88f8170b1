from __future__ import annotations

from collections.abc import Sequence

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest
from pytest_django import Settings

from crawling import frontier
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.models import Domain
from crawling.slices import run_slice
from notifications.catalogue import TYPES
from notifications.models import Event
from tests.factories.monitoring import WebsiteFactory
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True)]


def ignore(pages: Sequence[Page]) -> object:
    return lambda accepted: {}


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.monitoring.test_host_news.ignore"}
    settings.JOB_CONSUMERS = {}
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.CRAWL_DEFAULT_DELAY_SECONDS = 0


def crawl_what_resets(shop: ScriptedShop, count: int, **domain: object) -> Domain:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    urls = [f"{shop.url.rstrip('/')}/status/500?n={number}" for number in range(count)]
    frontier.ensure_domains(urls)
    Domain.objects.update(**domain)
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    run_slice(3)
    return Domain.objects.get()


def test_who_watches_a_host_hears_once_that_its_circuit_opened(shop: ScriptedShop) -> None:
    mine = WebsiteFactory.create(base_url=f"{shop.url}/")
    WebsiteFactory.create(client=mine.client, base_url=f"{shop.url}/second")
    other = WebsiteFactory.create(base_url=f"{shop.url}/")
    WebsiteFactory.create()
    domain = crawl_what_resets(shop, 3, breaker_threshold=2)
    assert domain.breaker_state == "open"
    events = Event.objects.filter(type="domain.circuit_opened")
    assert {event.client for event in events} == {mine.client, other.client}
    assert events.count() == 2
    for event in events:
        body = orjson.loads(event.body)
        jsonschema.validate(body, TYPES[event.type].schema)
        assert body["data"]["object"]["host"] == domain.host


def test_a_probe_that_fails_is_no_news(shop: ScriptedShop) -> None:
    WebsiteFactory.create(base_url=f"{shop.url}/")
    domain = crawl_what_resets(shop, 1, breaker_state="open", breaker_openings=1)
    assert (domain.breaker_state, domain.breaker_openings) == ("open", 2)
    assert not Event.objects.exists()
