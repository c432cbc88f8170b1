from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import orjson
import pytest
from django.utils.translation import gettext_lazy

from common.drf.rendering import JsonRenderer

BERLIN = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("19.90"), "19.90"),
        (Decimal("1E+3"), "1000"),
        (dt.datetime(2026, 5, 1, 12, 0, tzinfo=BERLIN), "2026-05-01T10:00:00Z"),
        (dt.datetime(2026, 5, 1, 12, 0, 0, 5, tzinfo=dt.UTC), "2026-05-01T12:00:00.000005Z"),
        (dt.date(2026, 5, 1), "2026-05-01"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (gettext_lazy("Save"), "Save"),
    ],
)
def test_values_have_one_form(value: Any, text: str) -> None:
    assert orjson.loads(JsonRenderer().render({"v": value})) == {"v": text}


def test_no_data_is_no_body() -> None:
    assert JsonRenderer().render(None) == b""
