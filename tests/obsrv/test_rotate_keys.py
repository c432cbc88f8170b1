from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Client
from common import key_rotation
from notifications.headers import pack
from notifications.models import Channel, WebhookEndpoint
from tests.factories.accounts import ClientFactory
from tests.factories.notifications import ChannelFactory, EndpointFactory

pytestmark = pytest.mark.django_db
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def rotate() -> dict[str, dict[str, int]]:
    out = StringIO()
    call_command("rotate_keys", json=True, stdout=out)
    columns = json.loads(out.getvalue())["columns"]
    return {f"{one.pop('table')}.{one.pop('column')}": one for one in columns}


@pytest.fixture
def rows(settings: Any) -> tuple[Client, WebhookEndpoint, Channel]:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    client = ClientFactory.create()
    endpoint = EndpointFactory.create(
        client=client, secret_current="whsec_own", headers=pack({"X-Token": "t"})
    )
    channel = ChannelFactory.create(client=client)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    return client, endpoint, channel


def test_after_rotation_the_old_key_is_not_needed(
    rows: tuple[Client, WebhookEndpoint, Channel], settings: Any
) -> None:
    client, endpoint, channel = rows
    found = rotate()
    assert found["notifications_webhookendpoint.headers"]["rotated"] == 1
    assert found["notifications_channel.url"]["rotated"] == 1
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert Client.objects.get().webhook_secret_current == client.webhook_secret_current
    again = WebhookEndpoint.objects.get()
    assert (again.secret_current, again.headers) == ("whsec_own", endpoint.headers)
    assert Channel.objects.get().url == channel.url


def test_a_second_run_has_nothing_to_do(rows: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_rotation, "BATCH", 2)
    ClientFactory.create_batch(5)
    rotate()
    found = rotate()
    assert sum(column["rotated"] for column in found.values()) == 0
    assert found["accounts_client.webhook_secret_current"]["current"] == 6


def test_a_secret_no_key_can_read_is_counted_and_left_and_stops_nobody(rows: object) -> None:
    lost = Fernet(Fernet.generate_key()).encrypt(b"x").decode()
    other = ClientFactory.create()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_client SET webhook_secret_current = %s WHERE id = %s", [lost, other.pk]
        )
    with pytest.raises(CommandError, match="1 secrets cannot be read"):
        rotate()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT webhook_secret_current FROM accounts_client WHERE id = %s", [other.pk]
        )
        assert cursor.fetchone() == (lost,)
    assert WebhookEndpoint.objects.get().secret_current == "whsec_own"
