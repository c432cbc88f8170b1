from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEntry, Client
from common.ids import uuid7
from tests.factories.accounts import ClientFactory, key_for

pytestmark = pytest.mark.django_db
CLIENTS = "/api/v1/clients"


def test_an_operator_creates_a_client(operator: Any) -> None:
    answer = operator.post(CLIENTS, {"name": "Shop", "email": "a@example.com", "max_websites": 5})
    assert answer.status_code == 201
    client = Client.objects.get(pk=answer.json()["id"])
    assert client.max_websites == 5
    assert answer["Location"] == f"{CLIENTS}/{client.pk}"
    assert client.webhook_secret_current not in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "name"),
        ({"name": "a", "email": "nobody"}, "email"),
        ({"name": "a", "email": "a@example.com", "max_websites": 101}, "max_websites"),
        ({"name": "a", "email": "a@example.com", "timezone": "Nowhere"}, "timezone"),
        ({"name": "a", "email": "a@example.com", "is_admin": True}, "is_admin"),
        ([], None),
    ],
)
def test_bad_input_is_named(operator: Any, body: Any, attr: str | None) -> None:
    answer = operator.post(CLIENTS, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_a_second_client_with_the_same_address_is_a_conflict(operator: Any) -> None:
    client = ClientFactory.create()
    answer = operator.post(CLIENTS, {"name": "b", "email": client.email})
    assert answer.status_code == 409
    assert answer.json()["code"] == "CONFLICT"


def test_clients_can_be_listed_searched_and_shown(operator: Any) -> None:
    one, _ = ClientFactory.create(name="Alpha"), ClientFactory.create(name="Beta", suspended=True)
    found = operator.get(CLIENTS, {"q": "alph", "is_active": "true"}).json()["items"]
    assert [item["id"] for item in found] == [str(one.pk)]
    names = [c["name"] for c in operator.get(CLIENTS, {"order": "-name"}).json()["items"]]
    assert names == ["Beta", "Alpha"]
    assert operator.get(f"{CLIENTS}/{one.pk}").json()["name"] == "Alpha"


def test_suspending_a_client_locks_its_keys_out(
    operator: Any, api: Any, client_row: Client
) -> None:
    assert api.get("/api/v1/me").status_code == 200
    assert operator.patch(f"{CLIENTS}/{client_row.pk}", {"is_active": False}).status_code == 200
    assert api.get("/api/v1/me").status_code == 403
    operator.patch(f"{CLIENTS}/{client_row.pk}", {"is_active": True})
    assert api.get("/api/v1/me").status_code == 200


def test_deleting_a_client_closes_it_but_keeps_the_row(operator: Any, client_row: Client) -> None:
    key_for(client_row)
    assert operator.delete(f"{CLIENTS}/{client_row.pk}").status_code == 204
    client_row.refresh_from_db()
    assert not client_row.is_active
    assert client_row.api_keys.live().count() == 0


def test_unknown_clients_are_404(operator: Any) -> None:
    assert operator.get(f"{CLIENTS}/{uuid7()}").status_code == 404
    assert operator.patch(f"{CLIENTS}/nonsense", {}).status_code == 404


@pytest.mark.parametrize("path", [CLIENTS, "/api/v1/audit-log"])
def test_a_clients_admin_key_is_not_an_operator(api: Any, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 403
    assert "operator" in answer.json()["detail"]


def test_the_audit_log_can_be_filtered(operator: Any) -> None:
    operator.post(CLIENTS, {"name": "Shop", "email": "a@example.com"})
    body = operator.get("/api/v1/audit-log", {"object_type": "accounts.client"}).json()
    assert [entry["verb"] for entry in body["items"]] == ["create"]
    assert body["items"][0]["actor_kind"] == "key"
    later = {"created_after": "2999-01-01T00:00:00Z"}
    assert operator.get("/api/v1/audit-log", later).json()["items"] == []
    assert operator.get("/api/v1/audit-log", {"created_after": "x"}).status_code == 400
    assert AuditEntry.objects.count() > 0
