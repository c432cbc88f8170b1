"""One row that cannot be used must not stop what is meant for others."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from common.crypto import Undecryptable
from notifications import notices
from notifications.delivery import deliver_due
from notifications.endpoints import live_secrets
from notifications.models import Channel, Delivery, Notice, WebhookEndpoint
from tests.factories.accounts import api_for
from tests.factories.notifications import ChannelFactory, EndpointFactory
from tests.notifications.receiver import Receiver
from tests.notifications.sending_tools import tell

pytestmark = pytest.mark.django_db


def lose_key(model: type[Any], column: str, pk: UUID) -> None:
    """As if it had been written under a key that nobody has any more."""
    lost = Fernet(Fernet.generate_key()).encrypt(b"whsec_bG9zdA==").decode()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {model._meta.db_table} SET {column} = %s WHERE id = %s", [lost, pk])


@pytest.mark.parametrize("column", ["secret_current", "headers"])
def test_an_endpoint_whose_secret_cannot_be_read_fails_alone(
    receiver: Receiver, column: str
) -> None:
    broken, well = (EndpointFactory.create(url=receiver.url) for _ in range(2))
    lose_key(WebhookEndpoint, column, broken.pk)
    tell(broken.client)
    tell(well.client)
    assert deliver_due() == 2
    assert len(receiver.got) == 1
    assert Delivery.objects.get(endpoint=well).status == "success"
    failed = Delivery.objects.get(endpoint=broken)
    assert failed.status == "retrying"
    assert "FIELD_ENCRYPTION_KEYS" in failed.last_error


def test_an_endpoint_whose_secret_cannot_be_read_is_switched_off_in_the_end(
    receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_RETRY_SECONDS = [0] * 20
    broken = EndpointFactory.create(url=receiver.url)
    lose_key(WebhookEndpoint, "secret_current", broken.pk)
    tell(broken.client)
    WebhookEndpoint.objects.update(failing_since="2026-01-01T00:00:00Z")
    for _ in range(12):
        deliver_due()
        WebhookEndpoint.objects.update(resting_until=None)
    off = WebhookEndpoint.objects.defer("secret_current").get(pk=broken.pk)
    assert not off.is_active


def test_a_channel_whose_address_cannot_be_read_fails_alone(
    receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_RETRY_SECONDS = [3600]
    broken, well = (
        ChannelFactory.create(url=f"json://127.0.0.1:{receiver.port}/room") for _ in range(2)
    )
    lose_key(Channel, "url", broken.pk)
    tell(broken.client)
    tell(well.client)
    assert notices.send_due() == 2
    assert [json.loads(got.body)["title"] for got in receiver.got]
    assert Notice.objects.get(channel_id=well.pk).status == "sent"
    assert "FIELD_ENCRYPTION_KEYS" in Notice.objects.get(channel_id=broken.pk).error


@pytest.mark.parametrize("column", ["secret_current", "headers"])
def test_a_webhook_that_cannot_be_read_is_shown_mended_and_deleted(column: str) -> None:
    broken = EndpointFactory.create()
    well = EndpointFactory.create(client=broken.client)
    lose_key(WebhookEndpoint, column, broken.pk)
    api: Any = api_for(broken.client, ["write"])
    one = f"/api/v1/webhooks/{broken.pk}"
    shown = {row["id"]: row for row in api.get("/api/v1/webhooks").json()["items"]}
    assert set(shown) == {str(broken.pk), str(well.pk)}
    assert "unreadable" in str(shown[str(broken.pk)]["header_names"]) or column != "headers"
    assert api.patch(one, {"description": "x"}).status_code == 200
    with pytest.raises(Undecryptable):
        getattr(WebhookEndpoint.objects.get(pk=broken.pk), column)
    assert api.patch(one, {"headers": {"X-Own": "1"}}).json()["header_names"] == ["X-Own"]
    assert api.post(f"{one}/rotate-secret", {"grace_seconds": 60}).status_code == 200
    assert live_secrets(WebhookEndpoint.objects.get(pk=broken.pk))
    lose_key(WebhookEndpoint, column, broken.pk)
    assert api.delete(one).status_code == 204


def test_a_channel_that_cannot_be_read_is_shown_mended_and_deleted(
    receiver: Receiver, admin_client: Any
) -> None:
    broken = ChannelFactory.create()
    lose_key(Channel, "url", broken.pk)
    api: Any = api_for(broken.client, ["write"])
    one = f"/api/v1/channels/{broken.pk}"
    [row] = api.get("/api/v1/channels").json()["items"]
    assert row["service"] == "unreadable: set the URL again"
    tested = api.post(f"{one}/test")
    assert (tested.status_code, tested.json()["code"]) == (409, "INVALID_STATE")
    assert "set it again" in tested.json()["detail"]
    page = admin_client.get("/admin/notifications/channel/")
    assert "unreadable" in page.content.decode()
    assert admin_client.get(f"/admin/notifications/channel/{broken.pk}/change/").status_code == 200
    mended = api.patch(one, {"url": f"json://127.0.0.1:{receiver.port}/room"})
    assert mended.json()["service"] == "json"
    lose_key(Channel, "url", broken.pk)
    assert api.delete(one).status_code == 204
