"""Manners towards a real shop on loopback, as the shop's log and our own ledger tell them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from accounts.audit import SYSTEM
from crawling import domains, frontier, ledger, robots
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.models import CrawlTask, Domain, LedgerEntry
from crawling.slices import run_slice
from tests.crawling.work import running_slice, wait_for
from tests.shop.server import Robots, ScriptedShop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.test_visits.ignore"}
    settings.JOB_CONSUMERS = {}


def ignore(pages: Sequence[Page]) -> object:
    return lambda accepted: {}


def submit(*urls: str, **domain: Any) -> None:
    job = frontier.open_job(kind="urls", triggered_by="manual", client_id=None)
    assert job is not None
    frontier.ensure_domains(urls)
    Domain.objects.update(**domain)
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in urls])


def crawl(*urls: str, seconds: float = 3, **domain: Any) -> Domain:
    submit(*urls, **domain)
    run_slice(seconds)
    return Domain.objects.get()


def statuses() -> set[str]:
    return set(CrawlTask.objects.values_list("status", flat=True))


def wait_of(domain: Domain) -> float:
    return ((domain.next_allowed_at or timezone.now()) - timezone.now()).total_seconds()


UNREACHABLE = [Robots(500), Robots(503), Robots(429, headers={"Retry-After": "7200"})]


@pytest.mark.parametrize("file", UNREACHABLE, ids=["500", "503", "429"])
def test_an_unreachable_robots_file_defers_and_the_wait_doubles(
    shop: ScriptedShop, file: Robots
) -> None:
    shop.robots = file
    domain = crawl(shop.product_urls[0])
    assert statuses() == {"pending"}
    assert wait_of(domain) == pytest.approx(7200 if file.headers else 300, abs=10)
    Domain.objects.update(next_allowed_at=None, robots_due_at=timezone.now())
    run_slice(2)
    assert Domain.objects.get().robots_failures == 2
    assert wait_of(Domain.objects.get()) == pytest.approx(7200 if file.headers else 600, abs=10)
    assert {hit.path for hit in shop.log} == {"/robots.txt"}


def test_a_robots_file_that_hangs_defers(
    shop: ScriptedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots, "TIMEOUT_SECONDS", 0.3)
    shop.robots = Robots(delay_seconds=2)
    crawl(shop.product_urls[0])
    assert statuses() == {"pending"}
    assert LedgerEntry.objects.get().error_category == "timeout"


def test_the_wait_for_robots_ends_at_six_hours() -> None:
    kept = robots.Kept("http://shop.example", failures=40)
    due_at = robots.keep(kept, robots.Asked()).due_at
    assert due_at is not None
    assert due_at <= timezone.now() + dt.timedelta(hours=6)


@pytest.mark.parametrize(("days", "status"), [(29, "completed"), (31, "pending")])
def test_the_last_good_copy_serves_for_a_month(shop: ScriptedShop, days: int, status: str) -> None:
    shop.robots = Robots(500)
    crawl(
        shop.product_urls[0],
        robots_status=200,
        robots_body="User-agent: *\nAllow: /\n",
        robots_fetched_at=timezone.now() - dt.timedelta(days=days),
    )
    assert statuses() == {status}


def test_a_good_copy_is_not_asked_for_again_within_a_day(shop: ScriptedShop) -> None:
    crawl(shop.product_urls[0])
    crawl(shop.product_urls[1])
    assert [hit.path for hit in shop.log].count("/robots.txt") == 1
    with time_machine.travel(timezone.now() + dt.timedelta(hours=25)):
        kept = robots.kept_of(Domain.objects.get(), shop.url.rstrip("/"))
        assert kept.is_due(timezone.now())


@pytest.mark.parametrize("mib", [2, 20])
def test_a_huge_robots_file_is_read_up_to_the_cap(shop: ScriptedShop, mib: int) -> None:
    late = "Disallow: /\n"
    filler = "# x\n" * (mib * 1024 * 1024 // 4)
    shop.robots = Robots(200, f"User-agent: *\nDisallow: /no\n{filler}{late}")
    crawl(shop.product_urls[0], f"{shop.url.rstrip('/')}/no/entry")
    assert statuses() == {"completed", "failed"}
    assert len(Domain.objects.get().robots_body) <= robots.MAX_BYTES


def test_the_query_string_counts(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "User-agent: *\nDisallow: /*?sort=\n")
    plain, sorted_ = f"{shop.url.rstrip('/')}/", f"{shop.url.rstrip('/')}/?sort=price"
    crawl(plain, sorted_)
    assert CrawlTask.objects.get(url=sorted_).error_category == "robots"
    assert CrawlTask.objects.get(url=plain).status == "completed"


def test_a_redirected_robots_file_is_followed(shop: ScriptedShop) -> None:
    moved = {"Location": "/redirect-chain?hops=9"}
    shop.robots = Robots(302, "", headers=moved)
    assert crawl(shop.product_urls[0]).robots_status == robots.TOO_MANY_REDIRECTS
    assert statuses() == {"completed"}


def test_sitemap_lines_are_kept(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "Sitemap: https://shop.example/a.xml\nUser-agent: *\nAllow: /\n")
    domain = crawl(shop.product_urls[0])
    assert robots.sitemaps_of(domain) == ["https://shop.example/a.xml"]


def test_http_and_https_of_a_host_have_a_robots_file_each() -> None:
    domain = Domain(base_url="https://shop.example", robots_body="x", robots_status=200)
    other = robots.kept_of(domain, "http://shop.example")
    assert (other.body, other.url) == ("", "http://shop.example/robots.txt")
    kept = robots.keep(other, robots.Asked(200, "User-agent: *\nDisallow: /\n"))
    columns = robots.columns_of(domain, kept)
    assert set(columns) == {"robots_other"}
    domain.robots_other = columns["robots_other"]
    again = robots.kept_of(domain, "http://shop.example")
    assert again == kept
    assert not again.rules(timezone.now()).allows("http://shop.example/p")


@pytest.mark.parametrize("form", ["seconds", "date"])
@pytest.mark.parametrize("path", ["/429", "/503"])
def test_both_forms_of_retry_after_rest_the_host(shop: ScriptedShop, path: str, form: str) -> None:
    base = shop.url.rstrip("/")
    domain = crawl(f"{base}{path}?retry_after=900&form={form}", *shop.product_urls[:3])
    assert wait_of(domain) == pytest.approx(900, abs=10)
    assert domain.backoff_seconds == 60


def test_a_host_that_only_says_busy_is_left_alone_for_longer_each_time(shop: ScriptedShop) -> None:
    url = f"{shop.url.rstrip('/')}/429"
    waits = [wait_of(crawl(url))]
    CrawlTask.objects.update(scheduled_at=timezone.now())
    waits.append(wait_of(crawl(next_allowed_at=None)))
    assert waits == [pytest.approx(60, abs=5), pytest.approx(120, abs=5)]


def test_one_probe_is_sent_to_an_open_circuit(shop: ScriptedShop) -> None:
    urls = [f"{shop.url.rstrip('/')}/status/500?n={n}" for n in range(10)]
    domain = crawl(*urls, breaker_state="open", breaker_openings=1)
    assert len([hit for hit in shop.log if hit.path != "/robots.txt"]) == 1
    assert (domain.breaker_state, domain.breaker_openings) == ("open", 2)
    assert wait_of(domain) == pytest.approx(600, abs=10)
    CrawlTask.objects.all().delete()
    domain = crawl(*shop.product_urls, next_allowed_at=None, last_request_at=None)
    assert (domain.breaker_state, statuses()) == ("closed", {"completed"})


def test_a_reset_outlasts_a_visit_that_learnt_nothing(shop: ScriptedShop) -> None:
    shop.robots = Robots(500, delay_seconds=2)
    submit(
        shop.product_urls[0], breaker_state="open", breaker_openings=2, breaker_window={1: [9, 0]}
    )
    with running_slice(5):
        wait_for(lambda: shop.requests["/robots.txt"])
        domains.reset_circuit(Domain.objects.get(), actor=SYSTEM)
    domain = Domain.objects.get()
    assert (domain.breaker_state, domain.breaker_openings) == ("closed", 0)


def test_missing_pages_leave_the_circuit_and_the_pace_alone(shop: ScriptedShop) -> None:
    urls = [f"{shop.url.rstrip('/')}/status/404?n={n}" for n in range(10)]
    domain = crawl(*urls, breaker_threshold=2)
    assert (domain.breaker_state, domain.throttle_seconds) == ("closed", 0)


def test_a_shop_in_its_window_is_not_visited(shop: ScriptedShop) -> None:
    now = timezone.now()
    domain = crawl(
        shop.product_urls[0],
        maintenance_start=(now - dt.timedelta(hours=1)).time(),
        maintenance_end=(now + dt.timedelta(hours=1)).time(),
    )
    assert shop.log == []
    assert wait_of(domain) == pytest.approx(3600, abs=10)


def test_a_visit_stops_when_the_window_opens(shop: ScriptedShop) -> None:
    opens = timezone.now() + dt.timedelta(seconds=2)
    domain = crawl(
        *shop.product_urls,
        seconds=6,
        crawl_delay_seconds=0.5,
        maintenance_start=opens.time(),
        maintenance_end=(opens + dt.timedelta(hours=1)).time(),
    )
    asked = LedgerEntry.objects.values_list("started_at", flat=True)
    assert asked
    assert max(asked) < opens
    assert statuses() == {"completed", "pending"}
    assert wait_of(domain) > 3000


def test_the_ledger_tells_every_request_with_its_gap(shop: ScriptedShop) -> None:
    shop.robots = Robots(200, "User-agent: *\nCrawl-delay: 0.2\n")
    domain = crawl(*shop.product_urls[:4], f"{shop.url.rstrip('/')}/status/404")
    entries = list(LedgerEntry.objects.order_by("started_at"))
    assert len(entries) == len(shop.log) == 6
    assert [entry.rule for entry in entries] == ["none", *["crawl-delay"] * 5]
    assert {entry.wanted_gap_seconds for entry in entries[1:]} == {0.2}
    assert sorted(entry.http_status or 0 for entry in entries) == [200] * 5 + [404]
    assert sum(entry.task_id is None for entry in entries) == 1
    assert ledger.broken_gaps(domain) == []
    call_command("ledger", domain.host, "--check")


def test_a_broken_gap_is_found_and_told(shop: ScriptedShop) -> None:
    domain = crawl(*shop.product_urls[:3], crawl_delay_seconds=0.1)
    LedgerEntry.objects.filter(gap_seconds__isnull=False).update(wanted_gap_seconds=5)
    assert len(ledger.broken_gaps(domain)) == 3
    with pytest.raises(CommandError, match="3 of 4 requests"):
        call_command("ledger", domain.host, "--check")


def test_the_ledger_can_be_switched_off_and_forgets_after_a_week(
    shop: ScriptedShop, settings: Settings
) -> None:
    crawl(shop.product_urls[0])
    settings.CRAWL_LEDGER = False
    crawl(shop.product_urls[1])
    assert LedgerEntry.objects.count() == 2
    LedgerEntry.objects.update(started_at=timezone.now() - dt.timedelta(days=8))
    assert ledger.purge() == 2


def test_the_gap_is_kept_over_slices(shop: ScriptedShop) -> None:
    submit(*shop.product_urls[:6], crawl_delay_seconds=0.4, max_concurrent_requests=4)
    for _ in range(6):
        run_slice(0.7)
    domain = Domain.objects.get()
    assert LedgerEntry.objects.count() >= 4
    assert ledger.broken_gaps(domain) == []


def test_a_blocked_domain_is_left_within_a_second_and_nothing_is_lost(shop: ScriptedShop) -> None:
    base = shop.url.rstrip("/")
    submit(*[f"{base}/slow?seconds=20&n={n}" for n in range(4)], max_concurrent_requests=2)
    # The pages outlast the slice: they come to an end only if they are let go.
    with running_slice(12):
        wait_for(lambda: len(shop.log) >= 3)
        Domain.objects.update(is_blocked=True)
        wait_for(lambda: not CrawlTask.objects.filter(status="crawling").exists())
    assert statuses() == {"pending"}
    assert Domain.objects.get().leased_by == ""


def test_a_worker_that_was_frozen_past_its_lease_asks_nobody(
    shop: ScriptedShop, settings: Settings
) -> None:
    settings.CRAWL_LEASE_SECONDS = -1
    crawl(shop.product_urls[0], seconds=1)
    assert shop.log == []
