"""Crawls through real proxies on loopback."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from django.utils import timezone
from pytest_django import Settings

from crawling import frontier, ledger
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.models import CrawlTask, Domain, DomainProxy, LedgerEntry, Proxy
from crawling.slices import run_slice
from tests.factories.accounts import api_for
from tests.shop.proxies import LISTEN, HttpProxy, LoopbackProxy, Socks5Proxy, hang_up
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_visits_by_proxy.ignore"}
    settings.JOB_CONSUMERS = {}


def ignore(pages: Sequence[Page]) -> object:
    return lambda accepted: {}


@pytest.fixture
def two() -> Iterator[tuple[HttpProxy, HttpProxy]]:
    with ExitStack() as stack:
        yield stack.enter_context(HttpProxy()), stack.enter_context(HttpProxy())


def submit(
    urls: Sequence[str], *proxies: LoopbackProxy, username: str = "", password: str = ""
) -> None:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])
    for proxy in proxies:
        DomainProxy.objects.create(
            domain=Domain.objects.get(),
            proxy=Proxy.objects.create(
                protocol=proxy.protocol,
                host=LISTEN,
                port=proxy.port,
                username=username,
                password=password,
            ),
        )


def statuses() -> set[str]:
    return set(CrawlTask.objects.values_list("status", flat=True))


@pytest.mark.parametrize("kind", [HttpProxy, Socks5Proxy])
def test_pages_and_robots_go_through_the_proxy_and_are_told(
    shop: ScriptedShop, kind: type[LoopbackProxy]
) -> None:
    with kind(login=("bob", "pa:ss")) as proxy:
        submit(shop.product_urls[:3], proxy, username="bob", password="pa:ss")
        run_slice(3)
        assert statuses() == {"completed"}
        task, used = CrawlTask.objects.all()[0], Proxy.objects.get()
        tasks = api_for(None).get(f"/api/v1/tasks/{task.pk}")
        assert tasks.json()["proxy_id"] == str(used.pk)
        tries = api_for(None).get(f"/api/v1/tasks/{task.pk}/attempts").json()["items"]
        assert {one["proxy_id"] for one in tries} == {str(used.pk)}
        assert proxy.requests
    kept = Proxy.objects.get()
    assert set(CrawlTask.objects.values_list("proxy_id", flat=True)) == {kept.id}
    assert set(LedgerEntry.objects.values_list("proxy_id", flat=True)) == {kept.id}
    assert (kept.success_count, kept.failure_count) == (4, 0)
    assert DomainProxy.objects.get().success_count == 4


def test_a_failing_proxy_costs_no_page_and_no_try(
    shop: ScriptedShop, two: tuple[HttpProxy, HttpProxy]
) -> None:
    bad, good = two
    bad.script = hang_up
    submit(shop.product_urls[:4], bad, good)
    run_slice(3)
    assert statuses() == {"completed"}
    assert set(CrawlTask.objects.values_list("retry_count", flat=True)) == {0}
    assert set(CrawlTask.objects.values_list("proxy__port", flat=True)) == {good.port}
    rested = DomainProxy.objects.get(proxy__port=bad.port)
    assert rested.consecutive_failures == 1
    assert rested.resting_until is not None
    assert rested.resting_until - timezone.now() > dt.timedelta(minutes=14)
    assert Domain.objects.get().breaker_failures == 0


def test_without_a_proxy_that_works_pages_wait_and_the_shop_is_not_asked(
    shop: ScriptedShop, two: tuple[HttpProxy, HttpProxy]
) -> None:
    for proxy in two:
        proxy.script = b"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n"
    submit(shop.product_urls[:4], *two)
    run_slice(2)
    assert statuses() == {"pending"}
    assert set(CrawlTask.objects.values_list("retry_count", "claims")) == {(0, 0)}
    assert not shop.log
    assert Domain.objects.get().next_allowed_at is not None


def test_proxies_do_not_multiply_the_rate_of_a_shop(
    shop: ScriptedShop, two: tuple[HttpProxy, HttpProxy]
) -> None:
    submit(shop.product_urls[:4], *two)
    Domain.objects.update(crawl_delay_seconds=0.3)
    run_slice(4)
    assert statuses() == {"completed"}
    assert ledger.broken_gaps(Domain.objects.get()) == []
    assert all(proxy.requests for proxy in two)
