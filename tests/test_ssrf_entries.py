"""Every place where the API takes an address, against every address it must not take."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import AuditEntry, Client
from common import guard, http
from tests.common.ssrf_corpus import PUBLIC_V4, REFUSED
from tests.factories.accounts import api_for
from tests.factories.crawling import ProxyFactory
from tests.factories.monitoring import WebsiteFactory

pytestmark = pytest.mark.django_db
REFUSALS = {"URL_INVALID", "URL_BLOCKED", "VALIDATION_ERROR"}
GOOD = f"http://{PUBLIC_V4}/"


@pytest.fixture(autouse=True)
def dialled(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been dialled: nothing leaves this machine even if the guard fails."""
    seen: list[Any] = []

    def record(address_info: Any) -> socket.socket:
        seen.append(address_info)
        raise OSError("no network in tests")

    settings.EGRESS_ALLOWED_NETWORKS = []
    settings.WEBHOOK_ALLOW_HTTP = True
    monkeypatch.setattr(http, "_open_socket", record)
    for module in (http, guard):
        monkeypatch.setattr(module, "resolve_name", lambda host: ["127.0.0.1"])
    return seen


def websites(client: Client) -> str:
    return "/api/v1/websites"


def website(client: Client) -> str:
    return f"/api/v1/websites/{WebsiteFactory.create(client=client).pk}"


def webhooks(client: Client) -> str:
    return "/api/v1/webhooks"


def trial(client: Client) -> str:
    return f"/api/v1/proxies/{ProxyFactory.create(host=PUBLIC_V4).pk}/test"


def domains(client: Client) -> str:
    return "/api/v1/domains"


def previews(client: Client) -> str:
    return "/api/v1/preview"


OPERATORS = (trial, domains)


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("post", websites, lambda url: {"base_url": url}),
        ("post", websites, lambda url: {"base_url": GOOD, "seed_urls": [url]}),
        ("post", websites, lambda url: {"base_url": GOOD, "webhook_endpoint_url": url}),
        ("patch", website, lambda url: {"webhook_endpoint_url": url}),
        ("post", webhooks, lambda url: {"url": url}),
        ("post", trial, lambda url: {"url": url}),
        ("post", domains, lambda url: {"base_url": url}),
        ("post", previews, lambda url: {"url": url}),
    ],
    ids=[
        "base_url",
        "seed_urls",
        "its webhook",
        "new webhook",
        "webhook",
        "proxy test",
        "domain",
        "preview",
    ],
)
def test_an_address_that_may_not_be_used_is_refused_and_never_dialled(
    client_row: Client,
    dialled: list[Any],
    verb: str,
    path: Callable[[Client], str],
    body: Callable[[str], dict[str, Any]],
) -> None:
    place = path(client_row)
    caller = api_for(None if path in OPERATORS else client_row)
    written, wrong = AuditEntry.objects.count(), {}
    for url in REFUSED:
        if "\ud800" in url:
            continue  # no JSON text
        answer = getattr(caller, verb)(place, body(url))
        if answer.status_code not in (400, 403) or answer.json()["code"] not in REFUSALS:
            wrong[url] = answer.json()
    assert wrong == {}
    assert dialled == []
    assert AuditEntry.objects.count() == written
