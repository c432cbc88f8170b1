"""Who asks: an API key, by ``Authorization: Bearer`` or ``X-API-Key``."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, cast

from django.core.exceptions import ValidationError
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts import keys
from accounts.audit import Actor
from accounts.models import ApiKey, Client
from common.errors import Invalid


@dataclass(frozen=True)
class KeyPrincipal:
    """``request.user`` of the API; satisfies ``common.drf.principals.Principal``."""

    key: ApiKey
    is_authenticated = True
    is_active = True

    @property
    def pk(self) -> uuid.UUID:
        return self.key.pk

    @property
    def owner_id(self) -> uuid.UUID:
        """Whose idempotency keys these are."""
        return self.key.client_id or self.key.pk

    def client_for(self, named: str | None) -> Client | None:
        own = self.key.client
        if named is None:
            return own
        found = self._named(named) if own is None else own
        # A client naming another learns no more than one naming nobody.
        if found is None or str(found.pk) != named.lower():
            raise Invalid("No such client.", attr="client")
        return found

    @staticmethod
    def _named(named: str) -> Client | None:
        try:
            return Client.objects.filter(pk=named).first()
        except (ValueError, ValidationError):
            return None


def actor_of(request: Request) -> Actor:
    return Actor.key(key_of(request))


def key_of(request: Request) -> ApiKey:
    """The key of an authenticated request."""
    return cast(ApiKey, request.auth)


def _presented(request: Request) -> str | None:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    return request.headers.get("X-API-Key")


class ApiKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[KeyPrincipal, ApiKey] | None:
        text = _presented(request)
        if text is None:
            return None
        key = keys.find(text)
        if key is None:
            raise AuthenticationFailed("This API key is unknown, revoked or expired.")
        if key.client is not None and not key.client.is_active:
            raise PermissionDenied("This client is suspended: ask the operator.")
        keys.note_use(key)
        return KeyPrincipal(key), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="api"'


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = ApiKeyAuthentication
    name = ["bearer", "apiKey"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "obsrv_live_…"},
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        ]
