from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Conflict, Invalid, Refused, UrlBlocked
from crawling import proxy_pool
from crawling.models import DomainProxy, Proxy
from tests.factories.crawling import DomainFactory, DomainProxyFactory, ProxyFactory
from tests.shop.proxies import LISTEN, HttpProxy, Socks5Proxy
from tests.shop.server import ScriptedShop

pytestmark = pytest.mark.django_db
PUBLIC = "93.184.216.34"
CANARY = "s3cret-canary"


def create(**fields: Any) -> Proxy:
    return proxy_pool.create_proxy(actor=SYSTEM, **{"host": PUBLIC, "port": 3128, **fields})


def test_the_password_is_encrypted_and_never_logged() -> None:
    proxy = create(username="ann", password=CANARY)
    proxy_pool.update_proxy(proxy, actor=SYSTEM, password=CANARY + "2")
    proxy_pool.delete_proxy(proxy, actor=SYSTEM)
    entries = AuditEntry.objects.all()
    assert {entry.verb for entry in entries} == {"create", "update", "delete"}
    assert CANARY not in str([(e.before, e.after, e.object_name) for e in entries])
    kept = create(username="bob", password=CANARY)
    with connection.cursor() as cursor:
        cursor.execute("SELECT password FROM crawling_proxy WHERE id = %s", [kept.id])
        assert CANARY not in cursor.fetchone()[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "10.0.0.1"},
        {"host": "169.254.169.254"},
        {"host": "localhost"},
        {"host": "x.internal"},
        {"port": 0},
        {"port": 70_000},
        {"protocol": "ftp"},
        {"username": "a\r\nX: 1"},
        {"password": "x" * 256},
        {"username": "a:b"},
        {"max_requests_per_hour": 0},
    ],
)
def test_a_bad_proxy_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        create(**fields)
    assert not Proxy.objects.exists()


def test_a_proxy_moved_to_a_private_address_is_refused() -> None:
    proxy = create()
    with pytest.raises(UrlBlocked):
        proxy_pool.update_proxy(proxy, actor=SYSTEM, host="192.168.0.1")
    proxy.refresh_from_db()
    assert proxy.host == PUBLIC


def test_the_same_proxy_twice_is_a_conflict() -> None:
    create()
    with pytest.raises(Conflict):
        create()
    other = create(port=3129)
    with pytest.raises(Conflict):
        proxy_pool.update_proxy(other, actor=SYSTEM, port=3128)


def test_enabling_forgets_the_failures() -> None:
    later = timezone.now() + dt.timedelta(hours=1)
    proxy = ProxyFactory.create(consecutive_failures=10, resting_until=later)
    proxy_pool.disable(proxy, actor=SYSTEM, reason="too dear")
    proxy.refresh_from_db()
    assert (proxy.is_active, proxy.disabled_reason) == (False, "too dear")
    proxy_pool.enable(proxy, actor=SYSTEM)
    proxy.refresh_from_db()
    assert (proxy.is_active, proxy.consecutive_failures, proxy.resting_until) == (True, 0, None)


def test_a_proxy_is_assigned_once_and_changed_and_taken_away() -> None:
    domain, proxy = DomainFactory.create(), ProxyFactory.create()
    mapping = proxy_pool.assign(domain, proxy, actor=SYSTEM, priority=2)
    with pytest.raises(Conflict):
        proxy_pool.assign(domain, proxy, actor=SYSTEM)
    with pytest.raises(Invalid):
        proxy_pool.update_mapping(mapping, actor=SYSTEM, priority=11)
    assert proxy_pool.update_mapping(mapping, actor=SYSTEM, priority=9).priority == 9
    proxy_pool.unassign(mapping, actor=SYSTEM)
    assert not DomainProxy.objects.exists()
    verbs = list(AuditEntry.objects.order_by("id").values_list("verb", flat=True))
    assert sorted(verbs) == ["assign", "unassign", "update"]


def test_a_mapping_that_was_switched_off_comes_back_without_its_failures() -> None:
    mapping = DomainProxyFactory.create(is_active=False, consecutive_failures=5)
    found = proxy_pool.update_mapping(mapping, actor=SYSTEM, is_active=True)
    found.refresh_from_db()
    assert (found.is_active, found.consecutive_failures) == (True, 0)


LINES = f"""
# bought in May
{PUBLIC}:8000
{PUBLIC}:8000
{PUBLIC}:8001:ann:{CANARY}:with:colons
socks5://bob:p%40ss@proxy.example:1080
10.0.0.1:3128
nonsense {CANARY}
ftp://{PUBLIC}:21
{PUBLIC}:99999
"""


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_import_answers_line_by_line_and_never_shows_a_login(dry_run: bool) -> None:
    answer = proxy_pool.import_proxies(LINES, actor=SYSTEM, dry_run=dry_run, pool="may")
    expected = ["created", "duplicate", "created", "created", *["invalid"] * 4]
    assert [line.result for line in answer] == expected
    assert [line.number for line in answer] == [3, 4, 5, 6, 7, 8, 9, 10]
    assert CANARY not in str(answer)
    assert Proxy.objects.count() == AuditEntry.objects.count() == (0 if dry_run else 3)


def test_imported_proxies_have_their_logins_and_the_defaults() -> None:
    proxy_pool.import_proxies(LINES, actor=SYSTEM, protocol="https", pool="may")
    ann, bob = Proxy.objects.get(username="ann"), Proxy.objects.get(username="bob")
    assert (ann.protocol, ann.password, ann.pool) == ("https", f"{CANARY}:with:colons", "may")
    assert (bob.protocol, bob.password, bob.port) == ("socks5", "p@ss", 1080)
    again = proxy_pool.import_proxies(LINES, actor=SYSTEM, protocol="https")
    assert "created" not in {line.result for line in again}


@pytest.mark.parametrize("kind", [HttpProxy, Socks5Proxy])
@pytest.mark.parametrize("password", [CANARY, "wrong"])
def test_a_test_goes_through_the_proxy(
    kind: Any, password: str, shop: ScriptedShop, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    later = timezone.now() + dt.timedelta(hours=1)
    with kind(login=("ann", CANARY)) as running:
        proxy = ProxyFactory.create(
            protocol=running.protocol,
            host=LISTEN,
            port=running.port,
            username="ann",
            password=password,
            resting_until=later,
        )
        settings.PROXY_TEST_URL = f"{shop.url}/robots.txt"
        trial = proxy_pool.try_proxy(proxy, actor=SYSTEM)
        seen = len(running.requests)
    right = password == CANARY
    proxy.refresh_from_db()
    assert (trial.ok, trial.status, seen) == ((True, 200, 1) if right else (False, None, 0))
    assert proxy.resting_until == (None if right else later)
    assert (proxy.success_count, proxy.failure_count) == (int(right), 0)
    assert AuditEntry.objects.get().verb == "test"
