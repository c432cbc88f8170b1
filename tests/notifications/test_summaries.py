from __future__ import annotations

import datetime as dt
import importlib
import uuid
from decimal import Decimal
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest
import time_machine
from django.utils.module_loading import import_string

from notifications.catalogue import TYPES
from notifications.models import Event
from notifications.summaries import publish_due
from tests.factories.accounts import ClientFactory
from tests.factories.monitoring import ChangeFactory, ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
MORNING = dt.datetime(2026, 3, 10, 8, 0, tzinfo=dt.UTC)


def test_a_client_hears_each_morning_what_the_day_before_brought() -> None:
    client = ClientFactory.create()
    product = ProductFactory.create(
        website=WebsiteFactory.create(client=client, active=True), approved=True
    )
    day = dt.datetime(2026, 3, 9, 12, tzinfo=dt.UTC)
    drop = {"kind": "price_changed", "old": "10.00", "new": "8.00", "pct": Decimal("-20.00")}
    ChangeFactory.create(product=product, occurred_at=day, **drop)
    ChangeFactory.create(product=product, occurred_at=day - dt.timedelta(days=1), **drop)
    with time_machine.travel(MORNING):
        assert publish_due() == 1
        assert publish_due() == 0
    event = Event.objects.get(type="summary.daily")
    body = orjson.loads(event.body)
    jsonschema.validate(body, TYPES["summary.daily"].schema)
    told = body["data"]["object"]
    assert (told["date"], told["websites_active"], told["products_watched"]) == ("2026-03-09", 1, 1)
    assert told["changes"] == {"price_changed": 1}
    assert [one["new"] for one in told["largest_drops"]] == ["8.00"]


def test_the_morning_is_the_clients_own() -> None:
    ClientFactory.create(timezone="America/Los_Angeles")
    with time_machine.travel(MORNING):
        assert publish_due() == 0
    with time_machine.travel(MORNING + dt.timedelta(hours=8)):
        assert publish_due() == 1
    told = orjson.loads(Event.objects.get().body)["data"]["object"]
    assert told["date"] == "2026-03-09"
    assert told["from"] == "2026-03-09T07:00:00Z"


def test_a_suspended_client_hears_nothing() -> None:
    ClientFactory.create(suspended=True)
    with time_machine.travel(MORNING):
        assert publish_due() == 0


def test_a_client_without_figures_keeps_no_other_from_its_summary(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, well, also_well = (ClientFactory.create() for _ in range(3))
    place, _, name = settings.SUMMARY_SOURCE.rpartition(".")
    source = import_string(settings.SUMMARY_SOURCE)

    def figures(client_id: uuid.UUID, *days: dt.datetime) -> Any:
        if client_id == bad.pk:
            raise ArithmeticError("no figures")
        return source(client_id, *days)

    monkeypatch.setattr(importlib.import_module(place), name, figures)
    with time_machine.travel(MORNING), pytest.raises(ExceptionGroup):
        publish_due()
    assert {event.client for event in Event.objects.all()} == {well, also_well}
