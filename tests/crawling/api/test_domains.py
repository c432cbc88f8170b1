from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django import DjangoAssertNumQueries

from accounts.models import AuditEntry, Client
from tests.factories.accounts import api_for
from tests.factories.crawling import DomainFactory

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
