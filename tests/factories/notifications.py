# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyFunction,
    SelfAttribute,
    Sequence,
    SubFactory,
    Trait,
)
from factory.django import DjangoModelFactory

from common.ids import uuid7
from notifications.models import Delivery, Event, WebhookEndpoint
from tests.factories.accounts import ClientFactory


class EndpointFactory(DjangoModelFactory[WebhookEndpoint]):
    class Meta:
        model = WebhookEndpoint

    class Params:
        disabled = Trait(is_active=False, disabled_reason="The receiver answered 410 Gone.")

    client = SubFactory(ClientFactory)
    url = "https://receiver.example/hooks"
    events = ["*"]


class EventFactory(DjangoModelFactory[Event]):
    class Meta:
        model = Event

    id = LazyFunction(uuid7)
    client = SubFactory(ClientFactory)
    type = "product.price_changed"
    sequence = Sequence(lambda n: n + 1)
    body = LazyAttribute(lambda event: f'{{"id": "evt_{event.id.hex}"}}')
    created_at = LazyFunction(timezone.now)


class DeliveryFactory(DjangoModelFactory[Delivery]):
    class Meta:
        model = Delivery

    endpoint = SubFactory(EndpointFactory)
    event = SubFactory(EventFactory, client=SelfAttribute("..endpoint.client"))
    next_retry_at = LazyFunction(timezone.now)
