from __future__ import annotations

import datetime as dt

import pytest
import time_machine
from django.utils import timezone

from accounts import keys
from accounts.audit import SYSTEM
from accounts.models import ApiKey, AuditEntry, Client
from common.errors import Invalid, InvalidState
from tests.factories.accounts import ApiKeyFactory, ClientFactory, key_for

pytestmark = pytest.mark.django_db


def test_a_new_key_is_found_by_its_text_and_stored_only_as_a_digest() -> None:
    client = ClientFactory.create()
    key, plaintext = keys.issue(client=client, name="shop", scopes=["write", "read"], actor=SYSTEM)
    assert keys.FORM.fullmatch(plaintext)
    assert keys.find(plaintext) == key
    assert key.scopes == ["read", "write"]
    assert key.prefix == plaintext[len("obsrv_live_") :][:8]
    stored = ApiKey.objects.filter(pk=key.pk).values().get()
    assert plaintext not in str(stored)


def test_finding_a_key_and_its_client_takes_one_query(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    plaintext = key_for(ClientFactory.create(), ["read"])
    with django_assert_num_queries(1):
        key = keys.find(plaintext)
        assert key is not None
        assert key.client is not None


@pytest.mark.parametrize(
    "text", ["", "obsrv_live_", "obsrv_live_" + "a" * 42, "x" * 54, "obsrv_live_" + "a" * 42 + "\0"]
)
def test_a_malformed_key_is_refused_without_a_query(text: str, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    with django_assert_num_queries(0):
        assert keys.find(text) is None


def test_revoked_and_expired_keys_are_not_found() -> None:
    key, revoked = keys.issue(client=None, name="a", scopes=["read"], actor=SYSTEM)
    keys.revoke(key, actor=SYSTEM)
    keys.revoke(key, actor=SYSTEM)
    soon = timezone.now() + dt.timedelta(hours=1)
    _, expiring = keys.issue(client=None, name="b", scopes=["read"], actor=SYSTEM, expires_at=soon)
    assert keys.find(revoked) is None
    assert AuditEntry.objects.filter(verb="revoke").count() == 1
    with time_machine.travel(soon + dt.timedelta(seconds=1)):
        assert keys.find(expiring) is None


def test_use_is_noted_at_most_once_a_minute(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    key = ApiKeyFactory.create()
    keys.note_use(key)
    first = ApiKey.objects.get(pk=key.pk).last_used_at
    assert first is not None
    # The row in hand is stale, as in a second request that came at the same time.
    keys.note_use(key)
    fresh = ApiKey.objects.get(pk=key.pk)
    assert fresh.last_used_at == first
    with django_assert_num_queries(0):
        keys.note_use(fresh)
    with time_machine.travel(first + dt.timedelta(seconds=61)):
        keys.note_use(fresh)
    later = ApiKey.objects.get(pk=key.pk).last_used_at
    assert later is not None
    assert later > first


def test_rotation_ends_the_old_text_and_keeps_the_key() -> None:
    key, old = keys.issue(client=ClientFactory.create(), name="a", scopes=["read"], actor=SYSTEM)
    rotated, new = keys.rotate(key, actor=SYSTEM)
    assert rotated.pk == key.pk
    assert keys.find(old) is None
    assert keys.find(new) == key


def test_a_revoked_key_cannot_be_changed_or_rotated() -> None:
    key = ApiKeyFactory.create(revoked=True)
    with pytest.raises(InvalidState):
        keys.rotate(key, actor=SYSTEM)
    with pytest.raises(InvalidState):
        keys.update(key, {"name": "b"}, actor=SYSTEM)


def test_a_clients_key_hands_on_no_more_than_it_has() -> None:
    client = ClientFactory.create()
    issuer = ApiKeyFactory.create(client=client, scopes=["write"], rate_limit_rpm=100)

    def issue(scopes: list[str], rpm: int) -> None:
        keys.issue(
            client=client,
            name="n",
            scopes=scopes,
            actor=SYSTEM,
            rate_limit_rpm=rpm,
            issuer=issuer,
        )

    issue(["read", "write"], 100)
    with pytest.raises(keys.NotGrantable, match="admin"):
        issue(["admin"], 100)
    with pytest.raises(keys.NotGrantable, match="100"):
        issue(["read"], 101)


@pytest.mark.parametrize("scopes", [[], ["root"], ["read", "root"]])
def test_scopes_must_be_known(scopes: list[str]) -> None:
    with pytest.raises(Invalid):
        keys.issue(client=None, name="a", scopes=scopes, actor=SYSTEM)


def test_a_key_cannot_expire_in_the_past() -> None:
    with pytest.raises(Invalid):
        keys.issue(client=None, name="a", scopes=["read"], actor=SYSTEM, expires_at=timezone.now())


def test_every_write_is_in_the_audit_log_without_the_key(client_row: Client) -> None:
    key, first = keys.issue(client=client_row, name="a", scopes=["read"], actor=SYSTEM)
    keys.update(key, {"name": "b"}, actor=SYSTEM)
    _, second = keys.rotate(key, actor=SYSTEM)
    keys.revoke(key, actor=SYSTEM)
    entries = list(AuditEntry.objects.filter(client=client_row).order_by("created_at").values())
    assert [entry["verb"] for entry in entries] == ["issue", "update", "rotate", "revoke"]
    assert first not in str(entries)
    assert second not in str(entries)
