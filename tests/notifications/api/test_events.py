from __future__ import annotations

import json
import uuid
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.utils import timezone

from accounts.models import Client
from notifications.catalogue import TYPES
from notifications.events import EventDraft, publish
from notifications.models import Event
from tests.factories.accounts import ClientFactory

pytestmark = pytest.mark.django_db
PATH = "/api/v1/events"


def tell(client: Client, count: int) -> list[uuid.UUID]:
    data = TYPES["product.approved"].data
    return publish(
        [
            EventDraft(client.pk, "product.approved", uuid.uuid4(), data, timezone.now())
            for _ in range(count)
        ]
    )


def test_pulling_gives_what_is_pushed_in_order_and_resumes(api: Any, client: Client) -> None:
    ids = tell(client, 5)
    tell(ClientFactory.create(), 2)
    answer = api.get(f"{PATH}?after=2&limit=2").json()
    assert [item["sequence"] for item in answer["items"]] == [3, 4]
    assert answer["items"][0] == json.loads(Event.objects.get(pk=ids[2]).body)
    more = api.get(PATH, {"after": 2, "limit": 2, "cursor": answer["next_cursor"]}).json()
    assert [item["sequence"] for item in more["items"]] == [5]
    assert more["has_more"] is False


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 40, ""])
def test_after_is_a_sequence_number(api: Any, after: str) -> None:
    assert api.get(PATH, {"after": after}).status_code == 400


def test_one_event_by_its_public_name_or_its_uuid(api: Any, client: Client) -> None:
    [pk] = tell(client, 1)
    for name in (f"evt_{pk.hex}", str(pk)):
        answer = api.get(f"{PATH}/{name}")
        assert answer.status_code == 200
        assert answer.json()["id"] == f"evt_{pk.hex}"


@pytest.mark.parametrize("name", ["evt_1", "x", "evt_" + "0" * 32])
def test_an_unknown_event_is_not_found(api: Any, name: str) -> None:
    assert api.get(f"{PATH}/{name}").status_code == 404


def test_another_clients_event_is_not_found(stranger: Any, client: Client) -> None:
    [pk] = tell(client, 1)
    assert stranger.get(f"{PATH}/{pk}").status_code == 404
    assert stranger.get(PATH).json()["items"] == []


def test_the_catalogue_lists_every_type_with_an_example_that_fits(api: Any) -> None:
    page = api.get("/api/v1/event-types").json()
    assert {item["type"] for item in page["items"]} == set(TYPES)
    for item in page["items"]:
        jsonschema.validate(item["example"], item["schema"])
