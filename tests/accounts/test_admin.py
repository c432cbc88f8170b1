from __future__ import annotations

import re

import pytest
from django.test import Client as Browser

from accounts import keys
from accounts.models import ApiKey, AuditEntry, Client
from tests.factories.accounts import ApiKeyFactory, ClientFactory, UserFactory

pytestmark = pytest.mark.django_db

CLIENT_FORM = {
    "name": "Shop",
    "email": "Shop@example.com",
    "subscription_tier": "basic",
    "is_active": "on",
    "max_websites": 3,
    "max_products_per_website": 10,
    "timezone": "UTC",
}


KEY_FORM = {"name": "k", "scopes": ["read", "write"], "rate_limit_rpm": 5}


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def form_of(client: Client) -> dict[str, object]:
    return CLIENT_FORM | {"name": client.name, "email": client.email}


@pytest.mark.parametrize("page", ["user", "client", "apikey", "auditentry"])
def test_every_list_opens(browser: Browser, page: str) -> None:
    ApiKeyFactory.create()
    assert browser.get(f"/admin/accounts/{page}/").status_code == 200
    assert browser.get("/admin/auth/group/").status_code == 200


def test_adding_a_client_gives_it_a_secret_and_an_audit_entry(browser: Browser) -> None:
    answer = browser.post("/admin/accounts/client/add/", CLIENT_FORM)
    assert answer.status_code == 302
    client = Client.objects.get()
    assert client.email == "shop@example.com"
    assert client.webhook_secret_current.startswith("whsec_")
    assert AuditEntry.objects.get(verb="create").actor_kind == "operator"


def test_a_wrong_time_zone_is_said_in_the_form(browser: Browser) -> None:
    answer = browser.post("/admin/accounts/client/add/", CLIENT_FORM | {"timezone": "Nowhere"})
    assert "IANA time zone" in answer.content.decode()


def test_the_form_button_rotates_the_secret_and_shows_it_once(browser: Browser) -> None:
    client = ClientFactory.create()
    old = client.webhook_secret_current
    page = f"/admin/accounts/client/{client.pk}/change/"
    button = {"accounts_client_rotate_webhook_secret": ""}
    shown = browser.post(page, form_of(client) | button, follow=True).content.decode()
    client.refresh_from_db()
    assert client.webhook_secret_previous == old
    secret = client.webhook_secret_current
    assert secret.replace("+", "&#x2B;") in shown.replace("+", "&#x2B;")
    assert secret not in browser.get(page).content.decode()


def test_the_list_action_suspends(browser: Browser) -> None:
    client = ClientFactory.create()
    chosen = {"action": "suspend_clients", "_selected_action": [str(client.pk)]}
    browser.post("/admin/accounts/client/", chosen)
    client.refresh_from_db()
    assert not client.is_active


def test_a_key_made_in_the_console_is_shown_once_and_works(browser: Browser) -> None:
    client = ClientFactory.create()
    form = KEY_FORM | {"holder": "client", "client": client.pk}
    answer = browser.post("/admin/accounts/apikey/add/", form, follow=True)
    found = re.search(keys.FORM, answer.content.decode())
    assert found is not None
    key = keys.find(found.group())
    assert key is not None
    assert key.scopes == ["read", "write"]
    page = browser.get(f"/admin/accounts/apikey/{key.pk}/change/").content.decode()
    assert found.group() not in page
    assert key.digest not in page


@pytest.mark.parametrize("holder", ["", "client"])
def test_a_key_without_a_client_is_no_operators_key_by_accident(
    browser: Browser, holder: str
) -> None:
    browser.post("/admin/accounts/apikey/add/", KEY_FORM | {"holder": holder, "client": ""})
    assert not ApiKey.objects.exists()


def test_an_operators_key_is_made_when_asked_for(browser: Browser) -> None:
    form = KEY_FORM | {"holder": "operator", "client": ""}
    browser.post("/admin/accounts/apikey/add/", form | {"client": ClientFactory.create().pk})
    assert not ApiKey.objects.exists()
    browser.post("/admin/accounts/apikey/add/", form)
    key = ApiKey.objects.get()
    assert key.client is None
    page = f"/admin/accounts/apikey/{key.pk}/change/"
    browser.post(page, KEY_FORM | {"name": "renamed"})
    assert ApiKey.objects.get().name == "renamed"


def test_keys_are_revoked_not_deleted(browser: Browser) -> None:
    key = ApiKeyFactory.create()
    chosen = {"action": "revoke_keys", "_selected_action": [str(key.pk)]}
    browser.post("/admin/accounts/apikey/", chosen)
    assert not ApiKey.objects.get(pk=key.pk).is_live
    assert browser.get(f"/admin/accounts/apikey/{key.pk}/delete/").status_code == 403


def test_the_audit_log_is_read_only(browser: Browser) -> None:
    browser.post("/admin/accounts/client/add/", CLIENT_FORM)
    entry = AuditEntry.objects.get()
    page = f"/admin/accounts/auditentry/{entry.pk}/"
    assert browser.get(f"{page}change/").status_code == 200
    assert browser.post(f"{page}change/", {"verb": "x"}).status_code == 403
    assert browser.post(f"{page}delete/", {"post": "yes"}).status_code == 403


def test_a_staff_user_without_rights_sees_no_clients() -> None:
    browser = Browser()
    browser.force_login(UserFactory.create(is_staff=True))
    assert browser.get("/admin/accounts/client/").status_code == 403


def test_a_new_operator_is_audited(browser: Browser) -> None:
    form = {
        "username": "ana",
        "usable_password": "true",
        "password1": "long-and-odd-7",
        "password2": "long-and-odd-7",
    }
    browser.post("/admin/accounts/user/add/", form)
    assert AuditEntry.objects.get(verb="create").object_name == "ana"
