from __future__ import annotations

import datetime as dt

import pytest
import time_machine
from django.db import connection

from accounts import clients, keys, webhook_secrets
from accounts.audit import SYSTEM
from accounts.models import AuditEntry, Client
from common.errors import Conflict, Invalid
from tests.factories.accounts import ClientFactory, key_for

pytestmark = pytest.mark.django_db


def test_a_new_client_has_a_secret_that_is_ciphertext_at_rest() -> None:
    client = clients.create(name="Shop", email="Buyer@Example.com", actor=SYSTEM)
    secret = Client.objects.get(pk=client.pk).webhook_secret_current
    assert secret.startswith("whsec_")
    assert client.email == "buyer@example.com"
    with connection.cursor() as cursor:
        cursor.execute("SELECT webhook_secret_current FROM accounts_client")
        assert secret not in str(cursor.fetchall())
    assert secret not in str(list(AuditEntry.objects.values()))


def test_an_email_address_belongs_to_one_client() -> None:
    clients.create(name="A", email="a@example.com", actor=SYSTEM)
    with pytest.raises(Conflict):
        clients.create(name="B", email="A@example.com", actor=SYSTEM)


@pytest.mark.parametrize(
    ("changes", "attr"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"max_websites": 101}, "max_websites"),
        ({"email": "nobody"}, "email"),
        ({"subscription_tier": "gold"}, "subscription_tier"),
    ],
)
def test_bad_values_are_refused_by_name(changes: dict[str, object], attr: str) -> None:
    with pytest.raises(Invalid) as refused:
        clients.update(ClientFactory.create(), changes, actor=SYSTEM)
    assert refused.value.attr == attr


def test_a_change_is_audited_with_before_and_after(client_row: Client) -> None:
    clients.update(client_row, {"max_websites": 7}, actor=SYSTEM)
    clients.update(client_row, {"max_websites": 7}, actor=SYSTEM)
    entry = AuditEntry.objects.get(client=client_row)
    assert entry.before["max_websites"] == 20
    assert entry.after["max_websites"] == 7


def test_closing_a_client_suspends_it_and_revokes_its_keys(client_row: Client) -> None:
    plaintext = key_for(client_row)
    clients.close(client_row, actor=SYSTEM)
    assert not Client.objects.get(pk=client_row.pk).is_active
    assert keys.find(plaintext) is None


def test_both_secrets_sign_during_the_grace_and_one_after(client_row: Client) -> None:
    old = client_row.webhook_secret_current
    new = webhook_secrets.rotate(client_row, grace_seconds=60, actor=SYSTEM)
    assert client_row.live_webhook_secrets() == [new, old]
    assert webhook_secrets.drop_expired() == 0
    end = client_row.secret_rotation_expires_at
    assert end is not None
    with time_machine.travel(end + dt.timedelta(seconds=1)):
        assert client_row.live_webhook_secrets() == [new]
        assert webhook_secrets.drop_expired() == 1
    assert Client.objects.get(pk=client_row.pk).webhook_secret_previous == ""


def test_without_grace_the_old_secret_ends_at_once(client_row: Client) -> None:
    new = webhook_secrets.rotate(client_row, grace_seconds=0, actor=SYSTEM)
    assert client_row.live_webhook_secrets() == [new]
    assert client_row.webhook_secret_previous == ""


@pytest.mark.parametrize("grace", [-1, 86_401])
def test_the_grace_is_at_most_a_day(client_row: Client, grace: int) -> None:
    with pytest.raises(Invalid):
        webhook_secrets.rotate(client_row, grace_seconds=grace, actor=SYSTEM)
