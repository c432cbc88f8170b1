from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiKey, Client
from tests.factories.accounts import ApiKeyFactory, api_for
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/api-keys"


@pytest.fixture
def api(client_row: Client) -> Any:
    return api_for(client_row)


def walk(api: Any, **query: Any) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        page = api.get(KEYS, query | ({"cursor": cursor} if cursor else {})).json()
        found += page["items"]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 8, 200])
def test_pages_show_every_row_once_newest_first(api: Any, client_row: Client, limit: int) -> None:
    ApiKeyFactory.create_batch(7, client=client_row)
    # Equal times: the id decides.
    ApiKey.objects.update(created_at=timezone.now())
    ids = [row["id"] for row in walk(api, limit=limit)]
    newest = ApiKey.objects.order_by("-created_at", "-id").values_list("id", flat=True)
    assert ids == [str(pk) for pk in newest]


@pytest.mark.parametrize("order", ["last_used_at", "-last_used_at"])
def test_rows_without_a_value_come_last(api: Any, client_row: Client, order: str) -> None:
    now = timezone.now()
    for minutes in (3, None, 1, None, 2, 2):
        used = now - dt.timedelta(minutes=minutes) if minutes else None
        ApiKeyFactory.create(client=client_row, last_used_at=used)
    rows = [row["last_used_at"] for row in walk(api, limit=2, order=order)]
    assert len(rows) == 7
    known = [value for value in rows if value]
    assert known == sorted(known, reverse=order.startswith("-"))
    assert rows[len(known) :] == [None] * 2


def test_a_page_uses_no_offset_and_does_not_count(api: Any, client_row: Client) -> None:
    ApiKeyFactory.create_batch(3, client=client_row)
    cursor = api.get(KEYS, {"limit": 1}).json()["next_cursor"]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        api.get(KEYS, {"limit": 1, "cursor": cursor})
    text = " ".join(query["sql"] for query in queries.captured_queries)
    assert "OFFSET" not in text
    assert "COUNT" not in text


def test_the_total_is_counted_when_asked(api: Any, client_row: Client) -> None:
    ApiKeyFactory.create_batch(3, client=client_row)
    assert api.get(KEYS, {"limit": 1, "count": "true"}).json()["total"] == 4
    assert "total" not in api.get(KEYS, {"count": "false"}).json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "0"),
        ("limit", "201"),
        ("limit", "-1"),
        ("limit", "x"),
        ("limit", "²"),
        ("limit", "9" * 5000),
        ("count", "yes"),
        ("cursor", "nonsense"),
        ("cursor", "e30.e30"),
        ("order", "digest"),
        ("order", "--name"),
        ("order", ""),
        ("revoked", "perhaps\0"),
        ("colour", "red"),
        ("format", "json"),
    ],
)
def test_bad_parameters_are_named(api: Any, name: str, value: str) -> None:
    answer = api.get(KEYS, {name: value})
    assert answer.status_code == 400
    assert answer.json()["code"] == "VALIDATION_ERROR"
    assert answer.json()["errors"][0]["attr"] == name


def test_a_cursor_belongs_to_its_order(api: Any, client_row: Client) -> None:
    ApiKeyFactory.create_batch(2, client=client_row)
    cursor = api.get(KEYS, {"limit": 1, "order": "name"}).json()["next_cursor"]
    assert api.get(KEYS, {"cursor": cursor, "order": "name"}).status_code == 200
    assert api.get(KEYS, {"cursor": cursor}).status_code == 400


def test_parameters_are_refused_where_there_is_no_list(api: Any) -> None:
    assert api.get("/api/v1/me", {"limit": "1"}).status_code == 400
