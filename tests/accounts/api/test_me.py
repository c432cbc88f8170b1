from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

import pytest

from accounts.models import AuditEntry, Client
from tests.factories.accounts import api_for

pytestmark = pytest.mark.django_db
ROTATE = "/api/v1/me/rotate-webhook-secret"


def count_shops(client_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, dict[str, int]]:
    return {pk: {"websites": 3} for pk in client_ids}


def test_me_shows_client_limits_and_usage(api: Any, client_row: Client, settings: Any) -> None:
    settings.USAGE_COUNTERS = {"monitoring": f"{__name__}.count_shops"}
    body = api.get("/api/v1/me").json()
    assert body["client"]["name"] == client_row.name
    assert body["limits"]["max_websites"] == 20
    assert body["usage"] == {"api_keys": 1, "websites": 3}
    assert "secret" not in str(body).replace("secret_rotation_expires_at", "")


def test_me_of_an_operator_key_has_no_client(operator: Any) -> None:
    body = operator.get("/api/v1/me").json()
    assert body["client"] is None
    assert body["limits"] is None
    assert body["key"]["scopes"] == ["admin"]


def test_rotating_the_webhook_secret_shows_the_new_one(api: Any, client_row: Client) -> None:
    old = client_row.webhook_secret_current
    answer = api.post(ROTATE, {"grace_seconds": 10})
    client_row.refresh_from_db()
    assert answer.status_code == 200
    assert client_row.live_webhook_secrets() == [answer.json()["secret"], old]
    assert answer.json()["previous_expires_at"].endswith("Z")
    assert AuditEntry.objects.filter(verb="rotate_webhook_secret", client=client_row).exists()


@pytest.mark.parametrize("body", [{"grace_seconds": 86_401}, {"grace_seconds": "x"}, {"grace": 1}])
def test_rotation_refuses_bad_input(api: Any, body: dict[str, Any]) -> None:
    assert api.post(ROTATE, body).status_code == 400


def test_rotation_needs_the_admin_scope(client_row: Client) -> None:
    assert api_for(client_row, ["write"]).post(ROTATE).status_code == 403


def test_an_operator_key_has_no_secret_to_rotate(operator: Any) -> None:
    assert operator.post(ROTATE).status_code == 400
