from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts import keys
from accounts.models import ApiKey, AuditEntry, Client
from common.ids import uuid7
from tests.factories.accounts import ApiKeyFactory, ClientFactory, api_for

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/api-keys"
NEW = {"name": "shop", "scopes": ["read"]}


def test_a_created_key_is_shown_once_and_works(api: Any, client_row: Client) -> None:
    answer = api.post(KEYS, NEW)
    assert answer.status_code == 201
    body = answer.json()
    key = keys.find(body["key"])
    assert key is not None
    assert key.client == client_row
    assert answer["Location"] == f"{KEYS}/{key.pk}"
    again = api.get(answer["Location"]).json()
    assert "key" not in again
    assert "digest" not in again
    entry = AuditEntry.objects.get(verb="issue", object_id=str(key.pk), actor_kind="key")
    assert entry.request_id == answer["X-Request-ID"]


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"scopes": ["read"]}, "name"),
        ({"name": "a"}, "scopes"),
        ({"name": "a", "scopes": []}, "scopes"),
        ({"name": "a", "scopes": ["root"]}, "scopes.0"),
        ({**NEW, "rate_limit_rpm": 0}, "rate_limit_rpm"),
        ({**NEW, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({**NEW, "client": "someone"}, "client"),
        ({**NEW, "id": str(uuid7())}, "id"),
    ],
)
def test_bad_input_is_named(api: Any, body: dict[str, Any], attr: str) -> None:
    answer = api.post(KEYS, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


def test_a_list_shows_only_the_clients_own_keys(api: Any, client_row: Client) -> None:
    ApiKeyFactory.create()
    own = ApiKeyFactory.create(client=client_row)
    names = [item["name"] for item in api.get(KEYS).json()["items"]]
    assert names == [own.name, "test"]


def test_revoked_keys_can_be_filtered(api: Any, client_row: Client) -> None:
    gone = ApiKeyFactory.create(client=client_row, revoked=True)
    found = api.get(KEYS, {"revoked": "true"}).json()["items"]
    assert [item["id"] for item in found] == [str(gone.pk)]
    assert len(api.get(KEYS, {"revoked": "false"}).json()["items"]) == 1


def test_a_key_can_be_changed(api: Any, client_row: Client) -> None:
    key = ApiKeyFactory.create(client=client_row)
    answer = api.patch(f"{KEYS}/{key.pk}", {"scopes": ["write", "read"]})
    assert answer.status_code == 200
    assert answer.json()["scopes"] == ["read", "write"]
    assert answer.json()["name"] == key.name
    assert ApiKey.objects.get(pk=key.pk).rate_limit_rpm == key.rate_limit_rpm


def test_a_deleted_key_stops_working_at_once(api: Any, client_row: Client) -> None:
    plaintext = keys.new_plaintext()
    key = ApiKeyFactory.create(client=client_row, plaintext=plaintext)
    assert api.delete(f"{KEYS}/{key.pk}").status_code == 204
    assert APIClient().get("/api/v1/me", headers={"x-api-key": plaintext}).status_code == 401
    assert api.post(f"{KEYS}/{key.pk}/rotate").json()["code"] == "INVALID_STATE"


def test_a_rotated_key_has_a_new_text(api: Any, client_row: Client) -> None:
    old = keys.new_plaintext()
    key = ApiKeyFactory.create(client=client_row, plaintext=old)
    answer = api.post(f"{KEYS}/{key.pk}/rotate")
    assert answer.status_code == 200
    assert keys.find(answer.json()["key"]) == key
    assert keys.find(old) is None


@pytest.mark.parametrize("verb", ["get", "patch", "delete", "rotate"])
def test_another_clients_key_is_not_there(api: Any, verb: str) -> None:
    key = ApiKeyFactory.create()
    other = f"{KEYS}/{key.pk}"
    answers = []
    for path in (other, f"{KEYS}/{uuid7()}", f"{KEYS}/nonsense"):
        call = api.post if verb == "rotate" else getattr(api, verb)
        answer = call(path + ("/rotate" if verb == "rotate" else ""))
        answers.append((answer.status_code, answer.json() | {"request_id": ""}))
    assert answers[0][0] == 404
    assert answers[0] == answers[1] == answers[2]
    assert ApiKey.objects.get(pk=key.pk).is_live


@pytest.mark.parametrize("scope", ["read", "write"])
def test_keys_need_the_admin_scope(client_row: Client, scope: str) -> None:
    api = api_for(client_row, [scope])
    assert api.get(KEYS).status_code == 403
    assert api.post(KEYS, NEW).json()["code"] == "FORBIDDEN"


def test_a_client_cannot_name_another_client(api: Any) -> None:
    other = ClientFactory.create()
    answer = api.post(f"{KEYS}?client={other.pk}", NEW)
    unknown = api.post(f"{KEYS}?client={uuid7()}", NEW)
    assert answer.status_code == unknown.status_code == 400
    assert answer.json()["detail"] == unknown.json()["detail"]
    assert not ApiKey.objects.filter(client=other).exists()


def test_an_operator_acts_for_the_client_it_names(operator: Any, client_row: Client) -> None:
    answer = operator.post(f"{KEYS}?client={client_row.pk}", NEW)
    assert answer.json()["client_id"] == str(client_row.pk)
    listed = operator.get(f"{KEYS}?client={client_row.pk}").json()["items"]
    assert [item["id"] for item in listed] == [answer.json()["id"]]
    assert len(operator.get(KEYS).json()["items"]) == 2
    assert operator.get(f"{KEYS}?client=nonsense").status_code == 400


def test_an_operator_naming_nobody_makes_an_operator_key(operator: Any) -> None:
    assert operator.post(KEYS, NEW).json()["client_id"] is None
