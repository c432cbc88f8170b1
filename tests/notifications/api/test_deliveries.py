from __future__ import annotations

import uuid
from typing import Any

import pytest

from accounts.audit import SYSTEM
from accounts.models import Client
from notifications.delivery import deliver_due
from notifications.endpoints import send_test
from notifications.models import Delivery
from tests.factories.notifications import DeliveryFactory, EndpointFactory, EventFactory
from tests.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db
PATH = "/api/v1/deliveries"


def test_a_delivery_shows_what_was_sent_and_what_came_back(
    api: Any, client: Client, receiver: Receiver
) -> None:
    endpoint = EndpointFactory.create(client=client, url=receiver.url)
    delivery = send_test(endpoint, SYSTEM)
    deliver_due()
    shown = api.get(f"{PATH}/{delivery.pk}").json()
    [got] = receiver.got
    assert shown["status"] == "success"
    assert shown["next_retry_at"] is None
    assert shown["request_body"] == got.body.decode()
    [attempt] = shown["attempts"]
    assert attempt["status_code"] == 200
    assert attempt["response_body"] == "thanks"
    assert attempt["request_headers"].items() <= got.headers.items()
    assert "whsec_" not in str(shown)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, 3),
        ({"status": "exhausted"}, 1),
        ({"event_type": "website.failed"}, 1),
        ({"event_type": "none"}, 0),
        ({"status": "pending", "event_type": "product.price_changed"}, 1),
    ],
)
def test_deliveries_are_filtered(
    api: Any, client: Client, query: dict[str, str], found: int
) -> None:
    DeliveryFactory.create(endpoint__client=client, status="exhausted")
    DeliveryFactory.create(endpoint__client=client, event__type="website.failed")
    DeliveryFactory.create(endpoint__client=client)
    DeliveryFactory.create()
    assert len(api.get(PATH, query).json()["items"]) == found


def test_deliveries_of_one_endpoint(api: Any, client: Client) -> None:
    mine = DeliveryFactory.create(endpoint__client=client)
    DeliveryFactory.create(endpoint__client=client)
    items = api.get(PATH, {"endpoint": str(mine.endpoint_id)}).json()["items"]
    assert [item["id"] for item in items] == [str(mine.pk)]


@pytest.mark.parametrize("query", [{"status": "lost"}, {"endpoint": "x"}, {"colour": "red"}])
def test_a_filter_that_makes_no_sense_is_refused(api: Any, query: dict[str, str]) -> None:
    assert api.get(PATH, query).status_code == 400


def test_redelivering(api: Any, client: Client) -> None:
    row = DeliveryFactory.create(endpoint__client=client, status="exhausted", attempt_number=8)
    answer = api.post(f"{PATH}/{row.pk}/redeliver")
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert Delivery.objects.get().status == Delivery.Status.PENDING


def test_another_client_finds_nothing(stranger: Any, client: Client) -> None:
    row = DeliveryFactory.create(endpoint__client=client, status="exhausted")
    for pk in (row.pk, uuid.uuid4()):
        assert stranger.get(f"{PATH}/{pk}").status_code == 404
        assert stranger.post(f"{PATH}/{pk}/redeliver").status_code == 404
    assert stranger.get(PATH).json()["items"] == []


def test_a_list_needs_the_same_queries_however_long(
    api: Any, client: Client, django_assert_max_num_queries: Any
) -> None:
    endpoint = EndpointFactory.create(client=client)
    for _ in range(8):
        DeliveryFactory.create(endpoint=endpoint, event=EventFactory.create(client=client))
    api.get(PATH)
    with django_assert_max_num_queries(3):
        assert len(api.get(PATH).json()["items"]) == 8
