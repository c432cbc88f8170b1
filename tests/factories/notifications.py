# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyFunction,
    SelfAttribute,
    SubFactory,
    Trait,
)
from factory.django import DjangoModelFactory

from accounts.models import Client
from common.ids import uuid7
from notifications.models import Channel, Delivery, Event, Feed, WebhookEndpoint
from tests.factories.accounts import ClientFactory


class EndpointFactory(DjangoModelFactory[WebhookEndpoint]):
    class Meta:
        model = WebhookEndpoint

    class Params:
        disabled = Trait(is_active=False, disabled_reason="The receiver answered 410 Gone.")

    client = SubFactory(ClientFactory)
    url = "https://receiver.example/hooks"
    events = ["*"]


class ChannelFactory(DjangoModelFactory[Channel]):
    class Meta:
        model = Channel

    client = SubFactory(ClientFactory)
    name = "Team"
    url = "jsons://receiver.example/room"
    events = ["*"]


def next_sequence(client: Client) -> int:
    """The client's feed is moved on, as for an event that the product writes."""
    feed, _ = Feed.objects.get_or_create(client=client)
    feed.last_sequence += 1
    feed.save()
    return feed.last_sequence


class EventFactory(DjangoModelFactory[Event]):
    class Meta:
        model = Event

    id = LazyFunction(uuid7)
    client = SubFactory(ClientFactory)
    type = "product.price_changed"
    sequence = LazyAttribute(lambda event: next_sequence(event.client))
    body = LazyAttribute(lambda event: f'{{"id": "evt_{event.id.hex}"}}')
    created_at = LazyFunction(timezone.now)


class DeliveryFactory(DjangoModelFactory[Delivery]):
    class Meta:
        model = Delivery

    endpoint = SubFactory(EndpointFactory)
    event = SubFactory(EventFactory, client=SelfAttribute("..endpoint.client"))
    object_id = SelfAttribute("event.object_id")
    sequence = SelfAttribute("event.sequence")
    next_retry_at = LazyFunction(timezone.now)
