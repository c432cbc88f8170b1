from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import AuditEntry, Client
from crawling.models import CrawlTask, Domain, LedgerEntry
from crawling.windows import quiet_until
from tests.factories.accounts import api_for
from tests.factories.crawling import CrawlErrorFactory, DomainFactory, TaskFactory
from tests.shop.server import ScriptedShop

pytestmark = pytest.mark.django_db
DOMAINS = "/api/v1/domains"


@pytest.mark.parametrize("host", ["shop.example", "shop.example:8443", "[2606:4700::1]:8080"])
def test_a_domain_is_found_by_its_host(operator: Any, host: str) -> None:
    DomainFactory.create(host=host)
    body = operator.get(f"{DOMAINS}/{host}").json()
    assert (body["host"], body["breaker_state"]) == (host, "closed")


def test_domains_are_listed_and_filtered(operator: Any) -> None:
    DomainFactory.create(host="b.example", blocked=True)
    DomainFactory.create(host="a.example")
    hosts = [item["host"] for item in operator.get(DOMAINS).json()["items"]]
    assert hosts == ["a.example", "b.example"]
    for query in ({"is_blocked": "true"}, {"q": "b.ex"}):
        (item,) = operator.get(DOMAINS, query).json()["items"]
        assert item["host"] == "b.example"


def test_the_pace_is_changed_and_logged(operator: Any) -> None:
    domain = DomainFactory.create()
    changes = {
        "crawl_delay_seconds": 2.5,
        "rate_limit_rps": 0.5,
        "max_concurrent_requests": 1,
        "respect_robots": False,
        "user_agent": "Us/1.0",
        "maintenance_start": "22:00:00",
        "maintenance_end": "04:30:00",
        "maintenance_timezone": "Europe/Berlin",
        "breaker_threshold": 3,
        "proxy_rotation": "least_used",
        "is_active": False,
    }
    body = operator.patch(f"{DOMAINS}/{domain.host}", changes).json()
    assert body | changes == body
    entry = AuditEntry.objects.get(verb="update")
    assert (entry.after, entry.before["crawl_delay_seconds"]) == (changes, 1.0)


def test_a_stale_change_is_refused(operator: Any) -> None:
    domain = DomainFactory.create()
    path = f"{DOMAINS}/{domain.host}"
    seen = operator.get(path)["ETag"]
    change = {"crawl_delay_seconds": 3}
    assert operator.patch(path, change, HTTP_IF_MATCH=seen).status_code == 200
    answer = operator.patch(path, {"crawl_delay_seconds": 4}, HTTP_IF_MATCH=seen)
    assert (answer.status_code, answer.json()["code"]) == (412, "PRECONDITION_FAILED")
    domain.refresh_from_db()
    assert domain.crawl_delay_seconds == 3


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"crawl_delay_seconds": -1}, "crawl_delay_seconds"),
        ({"crawl_delay_seconds": 1e9}, "crawl_delay_seconds"),
        ({"rate_limit_rps": 0}, "rate_limit_rps"),
        ({"max_concurrent_requests": 65}, "max_concurrent_requests"),
        ({"user_agent": "a\r\nX-Evil: 1"}, "user_agent"),
        ({"is_active": "maybe"}, "is_active"),
        ({"maintenance_start": "22:00"}, "maintenance_end"),
        ({"maintenance_start": "22:00", "maintenance_end": "22:00"}, "maintenance_end"),
        ({"maintenance_timezone": "Mars/North"}, "maintenance_timezone"),
        ({"parser_name": "magic"}, "parser_name"),
        ({"proxy_rotation": "sideways"}, "proxy_rotation"),
        ({"host": "other.example"}, "host"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    operator: Any, body: dict[str, Any], attr: str
) -> None:
    domain = DomainFactory.create()
    answer = operator.patch(f"{DOMAINS}/{domain.host}", {"respect_robots": False} | body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    domain.refresh_from_db()
    assert domain.respect_robots


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    operator: Any, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    DomainFactory.create_batch(count)
    operator.get(DOMAINS)
    with django_assert_num_queries(2):
        assert len(operator.get(DOMAINS).json()["items"]) == count


def test_a_client_is_told_that_this_is_for_operators(client: Browser, client_row: Client) -> None:
    domain = DomainFactory.create()
    owner = api_for(client_row, ["admin"])
    path = f"{DOMAINS}/{domain.host}"
    assert client.get(path).status_code == 401
    assert owner.get(DOMAINS).status_code == 403
    assert owner.get(path).status_code == 403
    assert owner.patch(path, {"is_active": False}).status_code == 403


def test_an_unknown_domain_is_not_found(operator: Any) -> None:
    assert operator.get(f"{DOMAINS}/nowhere.example").status_code == 404
    assert operator.patch(f"{DOMAINS}/nowhere.example", {}).status_code == 404


def test_a_domain_is_made_with_its_pace_and_only_once(operator: Any) -> None:
    body = {"base_url": "https://Shop.example/any/page", "crawl_delay_seconds": 7}
    answer = operator.post(DOMAINS, body)
    assert answer.status_code == 201
    assert answer["Location"] == f"{DOMAINS}/shop.example"
    made = answer.json()
    assert (made["base_url"], made["crawl_delay_seconds"]) == ("https://shop.example", 7)
    assert AuditEntry.objects.get(verb="create").object_name == "shop.example"
    again = operator.post(DOMAINS, body)
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")


@pytest.mark.parametrize("url", ["ftp://shop.example", "http://127.0.0.1/", "shop"])
def test_a_domain_nobody_may_crawl_is_not_made(operator: Any, url: str) -> None:
    assert operator.post(DOMAINS, {"base_url": url}).status_code in (400, 403)
    assert not Domain.objects.exists()


def test_a_domain_is_deleted_unless_pages_wait_for_it(operator: Any) -> None:
    task = TaskFactory.create()
    path = f"{DOMAINS}/{task.domain.host}"
    assert operator.delete(path).status_code == 409
    CrawlTask.objects.update(status="completed")
    assert operator.delete(path).status_code == 204
    assert not Domain.objects.exists()
    assert AuditEntry.objects.filter(verb="delete").count() == 1


def test_a_domain_is_blocked_with_a_reason_and_unblocked(operator: Any) -> None:
    domain = DomainFactory.create()
    body = operator.post(f"{DOMAINS}/{domain.host}/block", {"reason": "they asked"}).json()
    assert (body["is_blocked"], body["blocked_reason"]) == (True, "they asked")
    assert operator.post(f"{DOMAINS}/{domain.host}/block").json()["is_blocked"]
    assert not operator.post(f"{DOMAINS}/{domain.host}/unblock").json()["is_blocked"]


def test_an_open_circuit_is_reset_and_its_wait_ends(operator: Any) -> None:
    later = timezone.now() + dt.timedelta(hours=1)
    domain = DomainFactory.create(
        breaker_state="open", breaker_failures=9, breaker_openings=4, next_allowed_at=later
    )
    path = f"{DOMAINS}/{domain.host}/circuit/reset"
    body = operator.post(path).json()
    found = (body["breaker_state"], body["breaker_failures"], body["next_allowed_at"])
    assert found == ("closed", 0, None)
    assert operator.post(path).status_code == 409
    assert AuditEntry.objects.filter(verb="reset_circuit").count() == 1


def test_a_reset_circuit_does_not_end_what_the_shop_asked_for(operator: Any) -> None:
    later = timezone.now() + dt.timedelta(hours=1)
    domain = DomainFactory.create(breaker_state="open", backoff_seconds=60, next_allowed_at=later)
    body = operator.post(f"{DOMAINS}/{domain.host}/circuit/reset").json()
    assert body["next_allowed_at"] is not None


def test_a_window_that_is_moved_ends_the_rest_in_it(operator: Any) -> None:
    now = timezone.now()
    end = now + dt.timedelta(hours=1)
    domain = DomainFactory.create(
        maintenance_start=(now - dt.timedelta(hours=1)).time(), maintenance_end=end.time()
    )
    Domain.objects.update(next_allowed_at=quiet_until(domain, now))
    change = {"maintenance_start": None, "maintenance_end": None}
    body = operator.patch(f"{DOMAINS}/{domain.host}", change).json()
    assert body["next_allowed_at"] is None


def test_the_stats_of_a_domain_tell_what_waits_and_what_went_wrong(operator: Any) -> None:
    domain = DomainFactory.create(success_count=3, failure_count=1)
    error = CrawlErrorFactory.create(task__domain=domain)
    TaskFactory.create(domain=domain, status="completed")
    CrawlErrorFactory.create()
    body = operator.get(f"{DOMAINS}/{domain.host}/stats").json()
    assert (body["success_pct"], body["tasks"]) == (75.0, {"pending": 1, "completed": 1})
    assert [row["task_id"] for row in body["last_errors"]] == [str(error.task_id)]


def test_the_robots_file_is_shown_with_its_sitemaps(operator: Any) -> None:
    text = "Sitemap: https://shop.example/map.xml\nUser-agent: *\nDisallow: /no\n"
    domain = DomainFactory.create(robots_body=text, robots_status=200)
    path = f"{DOMAINS}/{domain.host}/robots"
    answer = operator.get(path)
    assert answer.json()["sitemaps"] == ["https://shop.example/map.xml"]
    assert operator.get(path, HTTP_IF_NONE_MATCH=answer["ETag"]).status_code == 304


def test_the_robots_file_is_asked_for_on_demand(
    operator: Any, shop: ScriptedShop, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    base = shop.url.rstrip("/")
    domain = DomainFactory.create(host=base.removeprefix("http://"), base_url=base)
    path = f"{DOMAINS}/{domain.host}/robots"
    answer = operator.post(path)
    assert (answer.status_code, answer.json()["status"]) == (200, 200)
    domain.refresh_from_db()
    assert (domain.leased_by, LedgerEntry.objects.get().http_status) == ("", 200)
    # Its pace holds for operators too.
    Domain.objects.update(crawl_delay_seconds=30, next_allowed_at=None)
    assert operator.post(path).status_code == 202
    assert len(shop.log) == 1
    assert AuditEntry.objects.filter(verb="refresh_robots").count() == 2


def test_the_ledger_is_paged_newest_first(operator: Any) -> None:
    domain = DomainFactory.create()
    for minute in range(3):
        started_at = timezone.now() + dt.timedelta(minutes=minute)
        LedgerEntry.objects.create(
            domain=domain, url=f"https://shop.example/{minute}", started_at=started_at, rule="none"
        )
    path = f"{DOMAINS}/{domain.host}/ledger"
    first = operator.get(path, {"limit": 2}).json()
    assert [row["url"][-1] for row in first["items"]] == ["2", "1"]
    second = operator.get(path, {"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["url"][-1] for row in second["items"]] == ["0"]
    assert operator.get(f"{DOMAINS}/nowhere.example/ledger").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("delete", ""),
        ("post", "/block"),
        ("post", "/unblock"),
        ("get", "/robots"),
        ("post", "/robots"),
        ("post", "/circuit/reset"),
        ("get", "/stats"),
        ("get", "/ledger"),
    ],
)
def test_only_operators_may_see_and_do_this(client_row: Client, method: str, path: str) -> None:
    domain = DomainFactory.create()
    owner = api_for(client_row, ["admin"])
    assert getattr(owner, method)(f"{DOMAINS}/{domain.host}{path}").status_code == 403
