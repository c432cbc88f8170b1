from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Invalid
from notifications import endpoints
from notifications.delivery import deliver_due
from notifications.headers import pack, unpack
from notifications.models import WebhookEndpoint
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.notifications import EndpointFactory
from tests.notifications.receiver import Receiver
from tests.notifications.sending_tools import tell

OWN = {"Authorization": "Bearer canary-4711", "X-Tenant": "blue"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other.example"},
        {"content-length": "0"},
        {"X-Obsrv-Signature": "forged"},
        {"Webhook-Id": "forged"},
        {"X-Line": "a\r\nb: c"},
        {"X Space": "a"},
        {"": "a"},
        {"X-Unicode": "ü"},
        {"X-Long": "a" * 1025},
        {"X-Twice": "a", "x-twice": "b"},
        {f"X-{n}": "a" for n in range(21)},
    ],
    ids=lambda headers: next(iter(headers)) or "empty",
)
def test_a_header_that_could_do_harm_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        pack(headers)


def test_what_is_packed_is_unpacked() -> None:
    assert unpack(pack(OWN)) == OWN
    assert unpack(pack({})) == {}


@pytest.mark.django_db
def test_own_headers_are_sent_with_every_request_and_ours_stay_ours(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    endpoints.update_endpoint(endpoint, headers=OWN, actor=SYSTEM)
    tell(endpoint.client)
    deliver_due()
    got = receiver.got[0].headers
    assert OWN.items() <= got.items()
    assert got["X-Obsrv-Event"] == "product.price_changed"


@pytest.mark.django_db
def test_the_values_are_shown_nowhere_and_are_ciphertext_at_rest(receiver: Receiver) -> None:
    client = ClientFactory.create()
    api: Any = api_for(client, ["write"])
    made = api.post("/api/v1/webhooks", {"url": receiver.url, "headers": OWN})
    assert made.status_code == 201, made.json()
    assert made.json()["header_names"] == ["Authorization", "X-Tenant"]
    tell(client)
    deliver_due()
    [listed] = api.get("/api/v1/deliveries").json()["items"]
    shown = api.get(f"/api/v1/deliveries/{listed['id']}")
    assert shown.json()["attempts"][0]["request_headers"]["Authorization"] == "••••"
    pages = [made, shown, api.get("/api/v1/webhooks"), api.get("/api/v1/deliveries")]
    assert not any("canary-4711" in page.content.decode() for page in pages)
    assert "canary-4711" not in str(list(AuditEntry.objects.values()))
    with connection.cursor() as cursor:
        cursor.execute("SELECT headers FROM notifications_webhookendpoint")
        assert "canary-4711" not in str(cursor.fetchall())


@pytest.mark.django_db
def test_given_again_they_replace_the_old_ones_and_left_out_they_stay() -> None:
    endpoint = EndpointFactory.create()
    endpoints.update_endpoint(endpoint, headers=OWN, actor=SYSTEM)
    endpoints.update_endpoint(endpoint, description="x", actor=SYSTEM)
    assert unpack(WebhookEndpoint.objects.get().headers) == OWN
    endpoints.update_endpoint(endpoint, headers={"X-Tenant": "red"}, actor=SYSTEM)
    assert unpack(WebhookEndpoint.objects.get().headers) == {"X-Tenant": "red"}
