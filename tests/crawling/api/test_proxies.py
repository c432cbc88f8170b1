from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import AuditEntry, Client
from common import guard
from crawling.models import Proxy
from tests.factories.accounts import api_for
from tests.factories.crawling import DomainProxyFactory, ProxyFactory
from tests.shop.proxies import LISTEN, HttpProxy
from tests.shop.server import ScriptedShop
from tests.test_openapi import SCHEMA

pytestmark = pytest.mark.django_db
PROXIES = "/api/v1/proxies"
PUBLIC = "93.184.216.34"
CANARY = "s3cret-canary"
BODY = {
    "protocol": "socks5",
    "host": PUBLIC,
    "port": 1080,
    "username": "ann",
    "password": CANARY,
    "pool": "residential",
    "country_code": "de",
    "city": "Berlin",
    "provider": "Acme",
    "monthly_cost": "12.50",
    "max_requests_per_hour": 100,
}


def example_of(path: str) -> Any:
    content = SCHEMA["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    (example,) = content["examples"].values()
    return example["value"]


def test_a_proxy_is_made_and_its_password_never_shown(operator: Any) -> None:
    answer = operator.post(PROXIES, BODY)
    assert answer.status_code == 201
    made = answer.json()
    assert answer["Location"] == f"{PROXIES}/{made['id']}"
    shown = {name: text for name, text in BODY.items() if name != "password"}
    assert made | shown | {"country_code": "DE", "has_password": True} == made
    paths = ("", f"/{made['id']}")
    texts = [answer.content, *(operator.get(f"{PROXIES}{path}").content for path in paths)]
    assert not [text for text in texts if CANARY.encode() in text]
    assert Proxy.objects.get().password == CANARY
    entry = AuditEntry.objects.get(verb="create")
    assert (entry.after["host"], entry.after["password"]) == (PUBLIC, "set")


def test_the_example_of_the_contract_works(operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve_name", lambda host: [PUBLIC])
    assert operator.post(PROXIES, example_of(PROXIES)).status_code == 201


def test_the_same_proxy_twice_is_a_conflict(operator: Any) -> None:
    operator.post(PROXIES, BODY)
    again = operator.post(PROXIES, BODY)
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")


@pytest.mark.parametrize(
    ("change", "attr"),
    [
        ({"host": None}, "host"),
        ({"host": f"http://{PUBLIC}"}, "host"),
        ({"host": f"{PUBLIC}/path"}, "host"),
        ({"host": f"ann@{PUBLIC}"}, "host"),
        ({"port": 0}, "port"),
        ({"port": 65536}, "port"),
        ({"protocol": "ftp"}, "protocol"),
        ({"protocol": "http", "username": "a:b"}, "username"),
        ({"password": "a\nb"}, "password"),
        ({"country_code": "D1"}, "country_code"),
        ({"monthly_cost": "-1"}, "monthly_cost"),
        ({"max_requests_per_hour": 0}, "max_requests_per_hour"),
        ({"is_active": False}, "is_active"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    operator: Any, change: dict[str, Any], attr: str
) -> None:
    proxy = ProxyFactory.create(pool="before")
    for answer in (
        operator.post(PROXIES, BODY | change),
        operator.patch(f"{PROXIES}/{proxy.pk}", {"pool": "after"} | change),
    ):
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["attr"] == attr
    assert Proxy.objects.get().pool == "before"


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::1]", "0x7f.1"])
def test_a_proxy_inside_our_own_network_is_refused(operator: Any, host: str) -> None:
    proxy = ProxyFactory.create(host=PUBLIC)
    for answer in (
        operator.post(PROXIES, BODY | {"host": host}),
        operator.patch(f"{PROXIES}/{proxy.pk}", {"host": host}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "URL_BLOCKED")
    assert Proxy.objects.get().host == PUBLIC


def test_proxies_are_listed_and_filtered(operator: Any) -> None:
    mapping = DomainProxyFactory.create(proxy__host="a.example", proxy__pool="may")
    ProxyFactory.create(host="b.example", country_code="DE", is_active=False)
    queries = {
        "a.example": ({"pool": "may"}, {"domain": mapping.domain.host}, {"q": "a.ex"}),
        "b.example": ({"is_active": "false"}, {"country_code": "DE"}),
    }
    for host, asked in queries.items():
        for query in asked:
            (item,) = operator.get(PROXIES, query).json()["items"]
            assert item["host"] == host
    assert len(operator.get(PROXIES).json()["items"]) == 2


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    operator: Any, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ProxyFactory.create_batch(count)
    operator.get(PROXIES)
    with django_assert_num_queries(2):
        assert len(operator.get(PROXIES).json()["items"]) == count


def test_a_proxy_shows_how_it_served(operator: Any) -> None:
    proxy = ProxyFactory.create(success_count=3, failure_count=1, response_ms_ewma=80.5)
    body = operator.get(f"{PROXIES}/{proxy.pk}").json()
    assert (body["success_pct"], body["response_ms_ewma"]) == (75.0, 80.5)
    assert operator.get(f"{PROXIES}/{ProxyFactory.build().pk}").status_code == 404


def test_a_proxy_is_changed_and_the_change_logged(operator: Any) -> None:
    proxy = ProxyFactory.create(password="old")
    path = f"{PROXIES}/{proxy.pk}"
    body = operator.patch(path, {"password": CANARY, "city": "Oslo"}).json()
    assert (body["city"], "password" in body) == ("Oslo", False)
    entry = AuditEntry.objects.get(verb="update")
    assert (entry.before["password"], entry.after) == ("set", {"password": "set", "city": "Oslo"})
    assert operator.patch(path, {"password": ""}).json()["has_password"] is False


def test_a_deleted_proxy_is_gone_with_its_assignments(operator: Any) -> None:
    mapping = DomainProxyFactory.create()
    path = f"{PROXIES}/{mapping.proxy_id}"
    assert operator.delete(path).status_code == 204
    assert operator.get(path).status_code == operator.delete(path).status_code == 404
    assert operator.get(f"/api/v1/domains/{mapping.domain.host}/proxies").json()["items"] == []
    assert AuditEntry.objects.filter(verb="delete").count() == 1


def test_a_proxy_is_disabled_with_a_reason_and_enabled_afresh(operator: Any) -> None:
    rest = timezone.now() + dt.timedelta(hours=1)
    proxy = ProxyFactory.create(consecutive_failures=7, resting_until=rest)
    path = f"{PROXIES}/{proxy.pk}"
    off = operator.post(f"{path}/disable", {"reason": "too dear"}).json()
    assert (off["is_active"], off["disabled_reason"]) == (False, "too dear")
    on = operator.post(f"{path}/enable").json()
    assert (on["is_active"], on["disabled_reason"]) == (True, "")
    assert (on["consecutive_failures"], on["resting_until"]) == (0, None)
    assert operator.post(f"{path}/disable").json()["disabled_reason"] == "by an operator"
    verbs = AuditEntry.objects.exclude(verb="issue").values_list("verb", flat=True)
    assert sorted(verbs) == ["disable", "disable", "enable"]


def test_a_test_fetches_a_page_through_the_proxy(
    operator: Any, shop: ScriptedShop, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.PROXY_TEST_URL = f"{shop.url}/nowhere"
    with HttpProxy() as running:
        proxy = ProxyFactory.create(host=LISTEN, port=running.port)
        path = f"{PROXIES}/{proxy.pk}/test"
        named = operator.post(path, {"url": f"{shop.url}/robots.txt"}).json()
        usual = operator.post(path).json()
    gone = operator.post(path).json()
    assert (named["ok"], named["status"], named["error"]) == (True, 200, "")
    assert (usual["ok"], usual["status"]) == (True, 404)
    assert (gone["ok"], gone["status"]) == (False, None)
    assert gone["error"]
    assert AuditEntry.objects.filter(verb="test").count() == 3


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://169.254.169.254/latest", "ftp://x.example"]
)
def test_a_test_is_no_way_into_our_own_network(operator: Any, url: str) -> None:
    proxy = ProxyFactory.create(host=PUBLIC)
    answer = operator.post(f"{PROXIES}/{proxy.pk}/test", {"url": url})
    assert answer.status_code in (400, 403)
    assert not AuditEntry.objects.filter(verb="test").exists()


LINES = f"""
# bought in May
{PUBLIC}:8000
{PUBLIC}:8000
{PUBLIC}:8001:ann:{CANARY}
socks5://bob:{CANARY}@proxy.example:1080
10.0.0.1:3128
nonsense {CANARY}
"""


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_import_answers_line_by_line(operator: Any, dry_run: bool) -> None:
    answer = operator.post(f"{PROXIES}/import", {"text": LINES, "pool": "may", "dry_run": dry_run})
    assert answer.status_code == 200
    assert CANARY.encode() not in answer.content
    body = answer.json()
    assert (body["created"], body["duplicate"], body["invalid"]) == (3, 1, 2)
    results = [(item["line"], item["result"]) for item in body["items"]]
    expected = ["created", "duplicate", "created", "created", "invalid", "invalid"]
    assert results == list(zip(range(3, 9), expected, strict=True))
    assert body["items"][2]["proxy"] == f"http://{PUBLIC}:8001"
    assert all(item["detail"] for item in body["items"][4:])
    made = set(Proxy.objects.filter(pool="may").values_list("id", flat=True))
    assert {str(pk) for pk in made} == {item["id"] for item in body["items"]} - {None}
    assert len(made) == AuditEntry.objects.filter(verb="import").count() == (0 if dry_run else 3)


def test_the_example_of_an_import_works(operator: Any) -> None:
    path = f"{PROXIES}/import"
    assert operator.post(path, example_of(path)).status_code == 200
    assert not Proxy.objects.exists()


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": "x\n" * 10_001}, "text"),
        ({"text": f"{PUBLIC}:80", "protocol": "ftp"}, "protocol"),
        ({"text": f"{PUBLIC}:80", "host": PUBLIC}, "host"),
        ({"text": f"{PUBLIC}:80", "dry_run": "perhaps"}, "dry_run"),
    ],
)
def test_a_bad_import_changes_nothing(operator: Any, body: dict[str, Any], attr: str) -> None:
    answer = operator.post(f"{PROXIES}/import", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    assert not Proxy.objects.exists()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", ""),
        ("post", ""),
        ("post", "/import"),
        ("get", "/{id}"),
        ("patch", "/{id}"),
        ("delete", "/{id}"),
        ("post", "/{id}/enable"),
        ("post", "/{id}/disable"),
        ("post", "/{id}/test"),
    ],
)
def test_only_operators_may_see_and_do_this(
    client: Browser, client_row: Client, method: str, path: str
) -> None:
    proxy = ProxyFactory.create()
    url = f"{PROXIES}{path.format(id=proxy.pk)}"
    assert getattr(client, method)(url).status_code == 401
    assert getattr(api_for(client_row, ["admin"]), method)(url).status_code == 403
    assert getattr(api_for(None, ["read"]), method)(url).status_code == 403
