from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import AuditEntry, Client
from crawling.models import DomainProxy
from tests.factories.accounts import api_for
from tests.factories.crawling import DomainFactory, DomainProxyFactory, ProxyFactory

pytestmark = pytest.mark.django_db
DOMAINS = "/api/v1/domains"


def path_of(mapping: DomainProxy) -> str:
    return f"{DOMAINS}/{mapping.domain.host}/proxies/{mapping.proxy_id}"


def test_a_proxy_is_assigned_once(operator: Any) -> None:
    domain, proxy = DomainFactory.create(), ProxyFactory.create(host="p.example")
    path = f"{DOMAINS}/{domain.host}/proxies"
    answer = operator.post(path, {"proxy_id": str(proxy.pk), "priority": 2})
    assert answer.status_code == 201
    assert answer["Location"] == f"{path}/{proxy.pk}"
    made = answer.json()
    assert (made["proxy_id"], made["proxy"]) == (str(proxy.pk), "http://p.example:3128")
    assert (made["priority"], made["is_active"]) == (2, True)
    again = operator.post(path, {"proxy_id": str(proxy.pk)})
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
    assert AuditEntry.objects.filter(verb="assign").count() == 1


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "proxy_id"),
        ({"proxy_id": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d"}, "proxy_id"),
        ({"proxy_id": "nonsense"}, "proxy_id"),
        ({"priority": 0}, "priority"),
        ({"priority": 11}, "priority"),
        ({"is_active": True}, "is_active"),
    ],
)
def test_a_bad_assignment_is_refused(operator: Any, body: dict[str, Any], attr: str) -> None:
    domain, proxy = DomainFactory.create(), ProxyFactory.create()
    body = body and {"proxy_id": str(proxy.pk)} | body
    answer = operator.post(f"{DOMAINS}/{domain.host}/proxies", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    assert not DomainProxy.objects.exists()


def test_the_proxies_of_a_domain_are_listed_the_preferred_first(operator: Any) -> None:
    last = DomainProxyFactory.create(priority=9, success_count=1, failure_count=3)
    first = DomainProxyFactory.create(domain=last.domain, priority=1, is_active=False)
    DomainProxyFactory.create()
    path = f"{DOMAINS}/{last.domain.host}/proxies"
    items = operator.get(path).json()["items"]
    assert [item["proxy_id"] for item in items] == [str(first.proxy_id), str(last.proxy_id)]
    assert items[1]["success_pct"] == 25.0
    (item,) = operator.get(path, {"is_active": "true"}).json()["items"]
    assert item["proxy_id"] == str(last.proxy_id)


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    operator: Any, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    domain = DomainFactory.create()
    DomainProxyFactory.create_batch(count, domain=domain)
    path = f"{DOMAINS}/{domain.host}/proxies"
    operator.get(path)
    with django_assert_num_queries(4):
        assert len(operator.get(path).json()["items"]) == count


def test_an_assignment_is_changed_and_comes_back_afresh(operator: Any) -> None:
    rest = timezone.now() + dt.timedelta(hours=1)
    mapping = DomainProxyFactory.create(is_active=False, consecutive_failures=5, resting_until=rest)
    body = operator.patch(path_of(mapping), {"is_active": True, "priority": 1}).json()
    assert (body["is_active"], body["priority"]) == (True, 1)
    assert (body["consecutive_failures"], body["resting_until"]) == (0, None)
    entry = AuditEntry.objects.get(verb="update")
    assert (entry.before, entry.after) == (
        {"priority": 5, "is_active": False},
        {"priority": 1, "is_active": True},
    )


@pytest.mark.parametrize("body", [{"priority": 0}, {"is_active": "maybe"}, {"proxy_id": "x"}])
def test_a_bad_change_is_refused(operator: Any, body: dict[str, Any]) -> None:
    mapping = DomainProxyFactory.create()
    answer = operator.patch(path_of(mapping), body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == next(iter(body))


def test_a_proxy_is_taken_away(operator: Any) -> None:
    mapping = DomainProxyFactory.create()
    assert operator.delete(path_of(mapping)).status_code == 204
    assert operator.delete(path_of(mapping)).status_code == 404
    assert AuditEntry.objects.filter(verb="unassign").count() == 1


def test_what_is_not_assigned_is_not_found(operator: Any) -> None:
    mapping, other = DomainProxyFactory.create_batch(2)
    path = f"{DOMAINS}/{mapping.domain.host}/proxies/{other.proxy_id}"
    assert operator.patch(path, {"priority": 1}).status_code == 404
    assert operator.delete(path).status_code == 404
    assert operator.get(f"{DOMAINS}/nowhere.example/proxies").status_code == 404
    answer = operator.post(f"{DOMAINS}/nowhere.example/proxies", {"proxy_id": str(other.proxy_id)})
    assert answer.status_code == 404


@pytest.mark.parametrize("method", ["get", "post", "patch", "delete"])
def test_only_operators_may_see_and_do_this(
    client: Browser, client_row: Client, method: str
) -> None:
    mapping = DomainProxyFactory.create()
    path = path_of(mapping)
    if method in ("get", "post"):
        path = path.rpartition("/")[0]
    assert getattr(client, method)(path).status_code == 401
    assert getattr(api_for(client_row, ["admin"]), method)(path).status_code == 403
    assert getattr(api_for(None, ["read"]), method)(path).status_code == 403
