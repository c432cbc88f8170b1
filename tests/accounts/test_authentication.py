from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Client
from tests.factories.accounts import ClientFactory, key_for

pytestmark = pytest.mark.django_db
ME = "/api/v1/me"


@pytest.mark.parametrize(
    "header",
    [lambda key: {"authorization": f"Bearer {key}"}, lambda key: {"x-api-key": key}],
    ids=["bearer", "x-api-key"],
)
def test_either_header_opens_the_door(header: Any, client_row: Client) -> None:
    answer = APIClient().get(ME, headers=header(key_for(client_row, ["read"])))
    assert answer.status_code == 200
    assert answer.json()["client"]["id"] == str(client_row.pk)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": "Basic Zm9vOmJhcg=="},
        {"authorization": "Bearer obsrv_live_" + "a" * 43},
        {"x-api-key": "nonsense"},
        {"x-api-key": "\xff"},
    ],
)
def test_without_a_live_key_the_answer_is_401(headers: dict[str, str]) -> None:
    answer = APIClient().get(ME, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "AUTH_REQUIRED"
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_suspended_client_is_told_so() -> None:
    key = key_for(ClientFactory.create(suspended=True), ["read"])
    answer = APIClient().get(ME, headers={"x-api-key": key})
    assert answer.status_code == 403
    assert "suspended" in answer.json()["detail"]


def test_a_request_with_a_recently_used_key_checks_it_with_one_query(
    client_row: Client, django_assert_num_queries: Any
) -> None:
    headers = {"x-api-key": key_for(client_row, ["read"])}
    APIClient().get("/api/v1/clients", headers=headers)
    with django_assert_num_queries(1):
        assert APIClient().get("/api/v1/clients", headers=headers).status_code == 403
