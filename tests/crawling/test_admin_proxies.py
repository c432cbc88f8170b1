from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.models import AuditEntry
from crawling.models import DomainProxy, Proxy
from tests.factories.accounts import UserFactory
from tests.factories.crawling import DomainFactory, DomainProxyFactory, ProxyFactory
from tests.factories.static import static_root  # noqa: F401
from tests.shop.proxies import LISTEN, HttpProxy
from tests.shop.server import ScriptedShop

pytestmark = pytest.mark.django_db
PROXIES = "/admin/crawling/proxy/"
PUBLIC = "93.184.216.34"
CANARY = "s3cret-canary"
FORM = {
    "protocol": "http",
    "host": PUBLIC,
    "port": "3128",
    "username": "ann",
    "password": "",
    "pool": "",
    "provider": "",
    "country_code": "",
    "city": "",
    "monthly_cost": "",
    "max_requests_per_hour": "",
}
NO_ROWS = {"domain_proxies-TOTAL_FORMS": "0", "domain_proxies-INITIAL_FORMS": "0"}


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def press(browser: Browser, action: str, *rows: Any, **fields: str) -> str:
    chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows], **fields}
    return browser.post(PROXIES, chosen, follow=True).content.decode()


def row_of(mapping: DomainProxy, **fields: str) -> dict[str, str]:
    row = {
        "id": str(mapping.pk),
        "proxy": str(mapping.proxy_id),
        "domain": str(mapping.domain_id),
        "priority": str(mapping.priority),
        "is_active": "on",
    } | fields
    return {f"domain_proxies-0-{name}": text for name, text in row.items()} | {
        "domain_proxies-TOTAL_FORMS": "1",
        "domain_proxies-INITIAL_FORMS": "1" if row["id"] else "0",
    }


def test_a_proxy_is_made_and_its_password_never_shown(browser: Browser) -> None:
    answer = browser.post(f"{PROXIES}add/", FORM | NO_ROWS | {"password": CANARY})
    assert answer.status_code == 302
    proxy = Proxy.objects.get()
    assert (proxy.host, proxy.password) == (PUBLIC, CANARY)
    assert AuditEntry.objects.filter(verb="create").count() == 1
    for path in ("", f"{proxy.pk}/change/"):
        text = browser.get(f"{PROXIES}{path}").content.decode()
        assert PUBLIC in text
        assert CANARY not in text


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"password": ""}, CANARY),
        ({"password": "other"}, "other"),
        ({"username": ""}, ""),
    ],
)
def test_a_password_stays_until_it_or_its_user_is_changed(
    browser: Browser, change: dict[str, str], kept: str
) -> None:
    proxy = ProxyFactory.create(host=PUBLIC, username="ann", password=CANARY)
    answer = browser.post(f"{PROXIES}{proxy.pk}/change/", FORM | NO_ROWS | {"pool": "x"} | change)
    assert answer.status_code == 302
    proxy.refresh_from_db()
    assert (proxy.pool, proxy.password) == ("x", kept)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"host": "10.0.0.1"}, "cannot be used"),
        ({"host": "http://x.example"}, "without scheme"),
        ({"port": "0"}, "greater than or equal to 1"),
        ({"host": "taken.example"}, "already exists"),
    ],
)
def test_a_refused_change_is_told_at_the_form_and_changes_nothing(
    browser: Browser, change: dict[str, str], text: str
) -> None:
    ProxyFactory.create(host="taken.example", username="ann")
    proxy = ProxyFactory.create(host=PUBLIC, username="ann")
    path = f"{PROXIES}{proxy.pk}/change/"
    answer = browser.post(path, FORM | NO_ROWS | {"pool": "x"} | change)
    assert answer.status_code == 200
    assert text in answer.content.decode()
    proxy.refresh_from_db()
    assert (proxy.pool, proxy.host) == ("", PUBLIC)


def test_domains_are_added_changed_and_removed_on_the_page_of_a_proxy(browser: Browser) -> None:
    proxy, domain = ProxyFactory.create(host=PUBLIC, username="ann"), DomainFactory.create()
    path = f"{PROXIES}{proxy.pk}/change/"
    new = DomainProxy(proxy=proxy, domain=domain)
    assert browser.post(path, FORM | row_of(new, id="", priority="3")).status_code == 302
    mapping = DomainProxy.objects.get()
    assert (mapping.domain, mapping.priority) == (domain, 3)
    assert domain.host in browser.get(path).content.decode()
    assert browser.post(path, FORM | row_of(mapping, priority="7", is_active="")).status_code == 302
    mapping.refresh_from_db()
    assert (mapping.priority, mapping.is_active) == (7, False)
    assert browser.post(path, FORM | row_of(mapping, DELETE="on")).status_code == 302
    assert not DomainProxy.objects.exists()
    verbs = AuditEntry.objects.values_list("verb", flat=True)
    assert sorted(verbs) == ["assign", "unassign", "update"]


def test_a_wrong_row_saves_nothing_of_the_page(browser: Browser) -> None:
    mapping = DomainProxyFactory.create(proxy__host=PUBLIC, proxy__username="ann")
    path = f"{PROXIES}{mapping.proxy_id}/change/"
    answer = browser.post(path, FORM | {"pool": "x"} | row_of(mapping, priority="11"))
    assert "less than or equal to 10" in answer.content.decode()
    assert not AuditEntry.objects.exists()
    assert Proxy.objects.get().pool == ""


def test_the_page_of_a_domain_shows_its_proxies(browser: Browser) -> None:
    mapping = DomainProxyFactory.create(success_count=3, failure_count=1)
    text = browser.get(f"/admin/crawling/domain/{mapping.domain_id}/change/").content.decode()
    assert str(mapping.proxy) in text
    assert "75.0" in text


def test_chosen_proxies_are_disabled_and_enabled(browser: Browser) -> None:
    proxies = ProxyFactory.create_batch(2)
    assert "2 disabled" in press(browser, "disable", *proxies)
    assert not Proxy.objects.filter(is_active=True).exists()
    assert "1 enabled" in press(browser, "enable", proxies[0])
    assert Proxy.objects.get(is_active=True) == proxies[0]


def test_chosen_proxies_are_tried(browser: Browser, shop: ScriptedShop, settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.PROXY_TEST_URL = f"{shop.url}/robots.txt"
    with HttpProxy() as gone:
        pass
    with HttpProxy() as running:
        good = ProxyFactory.create(host=LISTEN, port=running.port)
        bad = ProxyFactory.create(host=LISTEN, port=gone.port)
        text = press(browser, "test", good, bad)
    assert f"{good} works: 200 in" in text
    assert f"{bad} does not work" in text


def test_a_proxy_whose_password_cannot_be_read_fails_alone(
    browser: Browser, shop: ScriptedShop, settings: Settings
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.PROXY_TEST_URL = f"{shop.url}/robots.txt"
    lost = ProxyFactory.create(host=LISTEN, port=1, username="ann", password=CANARY)
    settings.FIELD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with HttpProxy() as running:
        good = ProxyFactory.create(host=LISTEN, port=running.port)
        text = press(browser, "test", good, lost)
    assert f"{good} works: 200 in" in text
    assert "does not work: no key in FIELD_ENCRYPTION_KEYS reads its password" in text
    assert AuditEntry.objects.filter(verb="test").count() == 2


@pytest.mark.parametrize("page", ["ftp://x.example", "http://127.0.0.1/", "nothing"])
def test_a_test_page_that_must_not_be_fetched_is_told(
    browser: Browser, settings: Settings, page: str
) -> None:
    settings.PROXY_TEST_URL = page
    text = press(browser, "test", ProxyFactory.create(host=PUBLIC))
    assert "No proxy was tested. PROXY_TEST_URL:" in text
    assert not AuditEntry.objects.filter(verb="test").exists()


def test_chosen_proxies_are_assigned_to_a_domain(browser: Browser) -> None:
    domain, (one, other) = DomainFactory.create(), ProxyFactory.create_batch(2)
    DomainProxyFactory.create(domain=domain, proxy=other)
    asked = press(browser, "assign", one, other)
    assert str(one) in asked
    assert "No such domain" in press(
        browser, "assign", one, assign="", host="nowhere.example", priority="5"
    )
    text = press(browser, "assign", one, other, assign="", host=domain.host, priority="2")
    assert f"1 assigned to {domain.host}" in text
    assert "assigned to this domain already" in text
    assert DomainProxy.objects.get(proxy=one).priority == 2


def test_a_deleted_proxy_is_logged(browser: Browser) -> None:
    proxy, other = ProxyFactory.create_batch(2)
    browser.post(f"{PROXIES}{proxy.pk}/delete/", {"post": "yes"})
    press(browser, "delete_selected", other, post="yes")
    assert not Proxy.objects.exists()
    assert AuditEntry.objects.filter(verb="delete").count() == 2


IMPORT = {"text": f"{PUBLIC}:8000\n{PUBLIC}:8001:ann:{CANARY}\n10.0.0.1:1", "protocol": "http"}


def test_an_import_is_shown_before_it_is_done(browser: Browser) -> None:
    path = f"{PROXIES}import/"
    assert "Import a list" in browser.get(PROXIES).content.decode()
    assert "host:port:user:password" in browser.get(path).content.decode()
    text = browser.post(path, IMPORT | {"preview": ""}).content.decode()
    assert "2 would be imported, 1 not readable" in text
    assert f"http://{PUBLIC}:8001" in text
    assert not Proxy.objects.exists()
    text = browser.post(path, IMPORT | {"import": ""}, follow=True).content.decode()
    assert "2 imported, 1 not readable" in text
    assert CANARY not in text, "only what is to be mended stays in the box"
    assert "10.0.0.1:1" in text
    assert Proxy.objects.count() == AuditEntry.objects.filter(verb="import").count() == 2


def test_an_import_without_faults_leads_to_the_list(browser: Browser) -> None:
    answer = browser.post(
        f"{PROXIES}import/",
        {"text": f"{PUBLIC}:8000", "protocol": "socks5", "pool": "may", "import": ""},
    )
    assert (answer.status_code, answer["Location"]) == (302, PROXIES)
    assert str(Proxy.objects.get(pool="may")) == f"socks5://{PUBLIC}:8000"


@pytest.mark.parametrize("text", ["", "x\n" * 10_001])
def test_an_import_of_nothing_or_too_much_is_refused(browser: Browser, text: str) -> None:
    answer = browser.post(f"{PROXIES}import/", {"text": text, "protocol": "http", "import": ""})
    assert answer.status_code == 200
    assert not Proxy.objects.exists()


def test_who_may_only_look_cannot_do_anything(browser: Browser) -> None:
    looker = UserFactory.create(is_staff=True)
    grant(looker, "view_proxy")
    browser.force_login(looker)
    proxy = ProxyFactory.create()
    assert browser.get(PROXIES).status_code == 200
    assert browser.get(f"{PROXIES}import/").status_code == 403
    press(browser, "disable", proxy)
    proxy.refresh_from_db()
    assert proxy.is_active


def grant(user: Any, codename: str) -> None:
    user.user_permissions.add(Permission.objects.get(codename=codename))


@pytest.mark.parametrize("count", [1, 10])
def test_a_long_list_asks_no_more_than_a_short_one(browser: Browser, count: int) -> None:
    proxy = ProxyFactory.create(host=PUBLIC)
    DomainProxyFactory.create_batch(count, proxy=proxy)
    DomainProxyFactory.create_batch(count)
    for path in (PROXIES, f"{PROXIES}{proxy.pk}/change/"):
        browser.get(path)
        with CaptureQueriesContext(connection) as queries:
            browser.get(path)
        assert len(queries) <= 12
