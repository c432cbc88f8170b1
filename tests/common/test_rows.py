from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction

from common.ids import uuid7
from common.rows import as_json, copy_in
from notifications.models import Feed
from tests.factories.accounts import ClientFactory

pytestmark = pytest.mark.django_db


def test_values_come_back_from_the_database_as_they_went() -> None:
    at = dt.datetime(2026, 11, 18, 12, 30, 15, 123456, tzinfo=dt.UTC)
    row = (uuid7(), Decimal("12345678.1234"), 'quote " and back\\slash ’', at, None, True)
    names = ("id", "price", "text", "at", "none", "flag")
    types = "id uuid, price numeric(14, 4), text text, at timestamptz, none int, flag bool"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM json_to_recordset(%s::json) AS v({types})", [as_json(names, [row])]
        )
        assert cursor.fetchall() == [row]


def test_rows_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        as_json(("id", "name"), [(1,)])
    assert json.loads(as_json(("id",), [])) == []


def test_rows_are_copied_in_and_one_that_is_there_is_an_error() -> None:
    feeds = [Feed(client=ClientFactory.create(), last_sequence=n) for n in range(3)]
    copy_in(feeds)
    copy_in([])
    assert sorted(Feed.objects.values_list("last_sequence", flat=True)) == [0, 1, 2]
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_in(feeds[:1])
