from __future__ import annotations

import datetime as dt
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Client
from notifications.catalogue import TYPES
from notifications.events import EventDraft, publish
from notifications.models import Delivery, Event, Feed
from tests.factories.accounts import ClientFactory
from tests.factories.notifications import EndpointFactory

AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def draft(client: Client, kind: str = "product.price_changed", **given: Any) -> EventDraft:
    usual: dict[str, Any] = {"cause": uuid.uuid4(), "data": TYPES[kind].data, "occurred_at": AT}
    return EventDraft(client_id=client.pk, type=kind, **(usual | given))


@pytest.mark.django_db
def test_the_body_is_the_envelope_of_the_catalogue() -> None:
    client = ClientFactory.create()
    [event_id] = publish([draft(client)])
    body = json.loads(Event.objects.get(pk=event_id).body)
    jsonschema.validate(body, TYPES["product.price_changed"].schema)
    assert body["id"] == f"evt_{event_id.hex}"
    assert body["client_id"] == str(client.pk)
    assert (body["sequence"], body["created_at"]) == (1, "2026-03-01T12:00:00Z")


@pytest.mark.django_db
def test_times_are_utc_and_decimals_are_text() -> None:
    vienna = AT.astimezone(dt.timezone(dt.timedelta(hours=1)))
    example = TYPES["product.price_changed"].data
    product = {**example["object"], "price": Decimal("10.50"), "name": "a\0b é"}
    data = {**example, "object": product}
    [event_id] = publish([draft(ClientFactory.create(), data=data, occurred_at=vienna)])
    body = json.loads(Event.objects.get(pk=event_id).body)
    assert body["created_at"] == "2026-03-01T12:00:00Z"
    assert body["data"] == {**example, "object": {**product, "price": "10.50"}}


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_nothing_is_published() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        publish([draft(ClientFactory.create())])
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_the_same_cause_and_type_is_one_event_for_ever() -> None:
    endpoint = EndpointFactory.create()
    news = draft(endpoint.client)
    other_kind = draft(endpoint.client, "product.new_low", cause=news.cause)
    first = publish([news, news])
    assert publish([news, other_kind]) == [first[0], other_kind.id]
    assert Event.objects.count() == Delivery.objects.count() == 2
    assert Feed.objects.get(client=endpoint.client).last_sequence == 2


@pytest.mark.django_db
def test_each_client_has_its_own_numbers_in_the_order_given() -> None:
    one, two = ClientFactory.create(), ClientFactory.create()
    ids = publish([draft(one), draft(two), draft(one)])
    numbers = dict(Event.objects.values_list("pk", "sequence"))
    assert [numbers[pk] for pk in ids] == [1, 1, 2]


@pytest.mark.django_db
def test_only_listening_endpoints_of_the_client_are_told() -> None:
    client, website = ClientFactory.create(), uuid.uuid4()
    everything = EndpointFactory.create(client=client)
    prices = EndpointFactory.create(client=client, events=["product.price_changed"])
    shop = EndpointFactory.create(client=client, website_id=website)
    EndpointFactory.create(client=client, events=["website.*"])
    EndpointFactory.create(client=client, website_id=uuid.uuid4())
    EndpointFactory.create(client=client, disabled=True)
    EndpointFactory.create()
    publish([draft(client, website_id=website)])
    told = set(Delivery.objects.values_list("endpoint_id", flat=True))
    assert told == {everything.pk, prices.pk, shop.pk}


@pytest.mark.django_db
def test_an_endpoint_of_a_website_hears_nothing_without_one() -> None:
    endpoint = EndpointFactory.create(website_id=uuid.uuid4())
    publish([draft(endpoint.client)])
    assert not Delivery.objects.exists()


@pytest.mark.django_db
def test_the_number_of_queries_does_not_grow_with_the_drafts() -> None:
    clients = [EndpointFactory.create().client for _ in range(5)]

    def queries(count: int) -> int:
        drafts = [draft(clients[n % 5]) for n in range(count)]
        with CaptureQueriesContext(
            connection,
        ) as captured:
            publish(drafts)
        return len(captured)

    assert queries(1) == queries(500) <= 8


@pytest.mark.django_db
def test_the_sender_is_woken_once_it_is_committed(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    woken: list[str] = []
    monkeypatch.setattr("common.wakeups.wake", woken.append)
    with django_capture_on_commit_callbacks(execute=True):
        publish([draft(ClientFactory.create())])
        assert woken == []
    assert woken == ["notifications.tasks.deliver_due"]


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gap_when_many_publish_and_some_fail() -> None:
    client = ClientFactory.create()

    def publish_some(worker: int) -> None:
        try:
            for turn in range(5):
                with transaction.atomic():
                    publish([draft(client), draft(client)])
                    if turn == worker % 5:
                        transaction.set_rollback(True)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(publish_some, range(6)))
    numbers = list(Event.objects.order_by("sequence").values_list("sequence", flat=True))
    assert numbers == list(range(1, 6 * 4 * 2 + 1))


@pytest.mark.django_db(transaction=True)
def test_two_who_publish_the_same_cause_at_once_make_one_event() -> None:
    endpoint = EndpointFactory.create()
    news = draft(endpoint.client)

    def publish_it(_turn: int) -> None:
        try:
            with transaction.atomic():
                publish([news])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(publish_it, range(12)))
    assert Event.objects.count() == Delivery.objects.count() == 1
