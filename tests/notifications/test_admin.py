from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from notifications.models import Delivery, WebhookEndpoint
from tests.factories.accounts import ClientFactory, UserFactory
from tests.factories.notifications import DeliveryFactory, EndpointFactory, EventFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def page(model: str, view: str, *args: object) -> str:
    return reverse(f"admin:notifications_{model}_{view}", args=args)


def act(browser: Browser, model: str, action: str, *rows: Any) -> str:
    body = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(page(model, "changelist"), body, follow=True).content.decode()


@pytest.mark.parametrize("model", ["webhookendpoint", "event", "delivery"])
def test_a_list_needs_the_same_queries_however_long(browser: Browser, model: str) -> None:
    DeliveryFactory.create()
    browser.get(page(model, "changelist"))
    with CaptureQueriesContext(connection) as few:
        browser.get(page(model, "changelist"))
    DeliveryFactory.create_batch(8)
    with CaptureQueriesContext(connection) as many:
        assert browser.get(page(model, "changelist")).status_code == 200
    assert len(many) <= len(few)


def test_an_event_shows_its_body_escaped(browser: Browser) -> None:
    body = json.dumps({"name": "<script>alert(1)</script>"})
    event = EventFactory.create(body=body)
    shown = browser.get(page("event", "change", event.pk)).content.decode()
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;alert(1)" in shown


def test_a_delivery_shows_its_attempts_escaped(browser: Browser) -> None:
    row = DeliveryFactory.create()
    row.attempts.create(
        number=1,
        attempted_at=timezone.now(),
        signature_header="t=1",
        response_body="<script>alert(2)</script>",
    )
    shown = browser.get(page("delivery", "change", row.pk)).content.decode()
    assert "<script>alert(2)" not in shown
    assert "&lt;script&gt;alert(2)" in shown


def test_the_secret_is_shown_once_when_it_is_rotated(browser: Browser) -> None:
    endpoint = EndpointFactory.create()
    shown = act(browser, "webhookendpoint", "rotate_secret", endpoint)
    endpoint.refresh_from_db()
    assert endpoint.secret_current
    assert endpoint.secret_current in shown
    for address in (
        page("webhookendpoint", "changelist"),
        page("webhookendpoint", "change", endpoint.pk),
    ):
        assert "whsec_" not in browser.get(address).content.decode()


def test_endpoints_are_tested_switched_off_and_on(browser: Browser) -> None:
    endpoint = EndpointFactory.create()
    act(browser, "webhookendpoint", "send_test", endpoint)
    assert Delivery.objects.get().event.type == "webhook.test"
    act(browser, "webhookendpoint", "disable", endpoint)
    assert not WebhookEndpoint.objects.get().is_active
    assert "switched off" in act(browser, "webhookendpoint", "send_test", endpoint)
    act(browser, "webhookendpoint", "enable", endpoint)
    assert WebhookEndpoint.objects.get().is_active
    verbs = AuditEntry.objects.filter(actor_kind="operator").values_list("verb", flat=True)
    assert sorted(verbs) == ["test", "update", "update"]


def test_a_private_address_is_refused_in_the_form(browser: Browser) -> None:
    body = {"client": ClientFactory.create().pk, "events": "*", "timeout_seconds": 15}
    answer = browser.post(page("webhookendpoint", "add"), body | {"url": "https://127.0.0.1/"})
    assert answer.status_code == 200
    assert "cannot be used" in answer.content.decode()
    assert not WebhookEndpoint.objects.exists()
    answer = browser.post(
        page("webhookendpoint", "add"), body | {"url": "https://93.184.216.34/"}, follow=True
    )
    assert WebhookEndpoint.objects.get().secret_current in answer.content.decode()


def test_a_delivery_is_sent_again(browser: Browser) -> None:
    row = DeliveryFactory.create(status="exhausted")
    act(browser, "delivery", "redeliver", row)
    row.refresh_from_db()
    assert row.status == Delivery.Status.PENDING


@pytest.mark.parametrize("model", ["event", "delivery"])
def test_nothing_is_edited_by_hand(browser: Browser, model: str) -> None:
    assert browser.get(page(model, "add")).status_code == 403
