# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, Sequence, SubFactory, Trait
from factory.django import DjangoModelFactory
from rest_framework.test import APIClient

from accounts import keys, webhook_secrets
from accounts.audit import SYSTEM
from accounts.models import ApiKey, Client, User


class ClientFactory(DjangoModelFactory[Client]):
    class Meta:
        model = Client

    name = Sequence(lambda n: f"Retailer {n}")
    email = Sequence(lambda n: f"retailer{n}@example.com")
    webhook_secret_current = LazyFunction(webhook_secrets.new_secret)

    class Params:
        suspended = Trait(is_active=False)


class ApiKeyFactory(DjangoModelFactory[ApiKey]):
    """``plaintext`` may be given; the row keeps only its digest."""

    class Meta:
        model = ApiKey
        exclude = ["plaintext"]

    plaintext = LazyFunction(keys.new_plaintext)
    client = SubFactory(ClientFactory)
    name = Sequence(lambda n: f"key {n}")
    digest = LazyAttribute(lambda key: keys.digest_of(key.plaintext))
    prefix = LazyAttribute(lambda key: keys.prefix_of(key.plaintext))
    scopes = ["read"]
    rate_limit_rpm = 10_000

    class Params:
        operator = Trait(client=None, scopes=["admin"])
        revoked = Trait(invalidated_at=LazyFunction(timezone.now))


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User

    username = Sequence(lambda n: f"operator{n}")

    class Params:
        superuser = Trait(is_staff=True, is_superuser=True)


def key_for(client: Client | None, scopes: Collection[str] = ("admin",)) -> str:
    """The text of a new key; without a client an operator's."""
    _, plaintext = keys.issue(
        client=client, name="test", scopes=scopes, actor=SYSTEM, rate_limit_rpm=100_000
    )
    return plaintext


def api_for(client: Client | None, scopes: Collection[str] = ("admin",)) -> Any:
    """A test client that presents such a key."""
    api = APIClient()
    api.default_format = "json"
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {key_for(client, scopes)}")
    return api
