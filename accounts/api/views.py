from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import clients, keys, webhook_secrets
from accounts.api import filters
from accounts.api import serializers as shapes
from accounts.authentication import actor_of, key_of
from accounts.models import ApiKey, AuditEntry, Client
from accounts.usage import usage_of
from common.drf.permissions import scope_admin
from common.drf.views import ApiView, ClientViewSet, OperatorViewSet
from common.errors import Invalid


class MeView(ApiView):
    tag = "Account"

    @extend_schema(responses=shapes.MeSerializer)
    def get(self, request: Request) -> Response:
        """Show the client, its limits and what it uses."""
        key = key_of(request)
        client = key.client
        return Response(
            shapes.MeSerializer(
                {
                    "client": client,
                    "key": key,
                    "limits": client and _limits(client, key),
                    "usage": usage_of(client) if client else {},
                }
            ).data
        )


def _limits(client: Client, key: ApiKey) -> dict[str, int]:
    return {
        "max_websites": client.max_websites,
        "max_products_per_website": client.max_products_per_website,
        "rate_limit_rpm": key.rate_limit_rpm,
    }


class RotateWebhookSecretView(ApiView):
    tag = "Account"
    required_scopes = scope_admin

    @extend_schema(
        request=shapes.RotateSecretSerializer, responses={200: shapes.RotatedSecretSerializer}
    )
    def post(self, request: Request) -> Response:
        """Rotate the webhook secret; the answer shows it once."""
        body = shapes.RotateSecretSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        client = key_of(request).client
        if client is None:
            raise Invalid("An operator key has no webhook secret: use a key of the client.")
        secret = webhook_secrets.rotate(client, actor=actor_of(request), **body.validated_data)
        answer = {"secret": secret, "previous_expires_at": client.secret_rotation_expires_at}
        return Response(shapes.RotatedSecretSerializer(answer).data)


class ApiKeyViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Account"
    queryset = ApiKey.objects.all()
    serializer_class = shapes.ApiKeySerializer
    serializer_classes = {
        "create": shapes.ApiKeyWriteSerializer,
        "partial_update": shapes.ApiKeyWriteSerializer,
    }
    filterset_class = filters.ApiKeyFilter
    ordering_fields = ("created_at", "name", "last_used_at")
    required_scopes = scope_admin

    @extend_schema(responses={201: shapes.NewApiKeySerializer})
    def create(self, request: Request) -> Response:
        """Create an API key; the answer shows it once.

        An operator key that names no `client` makes another operator key.
        """
        key, plaintext = keys.issue(
            client=self.client, actor=actor_of(request), issuer=key_of(request), **self.valid_data()
        )
        return Response(_with_text(key, plaintext), 201, headers=_location(key))

    @extend_schema(responses=shapes.ApiKeySerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change an API key."""
        changes = {name: value for name, value in self.valid_data().items() if name in request.data}
        key = keys.update(
            self.get_object(), changes, actor=actor_of(request), issuer=key_of(request)
        )
        return Response(shapes.ApiKeySerializer(key).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke an API key, at once and for good."""
        keys.revoke(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(request=None, responses={200: shapes.NewApiKeySerializer})
    @action(detail=True, methods=["POST"])
    def rotate(self, request: Request, pk: str) -> Response:
        """Give an API key a new text; the old one stops working at once."""
        key, plaintext = keys.rotate(self.get_object(), actor=actor_of(request))
        return Response(_with_text(key, plaintext))


def _with_text(key: ApiKey, plaintext: str) -> dict[str, Any]:
    return {**shapes.ApiKeySerializer(key).data, "key": plaintext}


def _location(key: ApiKey) -> dict[str, str]:
    return {"Location": f"/api/v1/api-keys/{key.pk}"}


class ClientAdminViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, OperatorViewSet):
    tag = "Clients"
    queryset = Client.objects.all()
    serializer_class = shapes.ClientSerializer
    serializer_classes = {
        "create": shapes.ClientWriteSerializer,
        "partial_update": shapes.ClientWriteSerializer,
    }
    filterset_class = filters.ClientFilter
    ordering_fields = ("created_at", "name", "updated_at")

    @extend_schema(responses={201: shapes.ClientSerializer})
    def create(self, request: Request) -> Response:
        """Create a client."""
        client = clients.create(actor=actor_of(request), **self.valid_data())
        location = {"Location": f"/api/v1/clients/{client.pk}"}
        return Response(shapes.ClientSerializer(client).data, 201, headers=location)

    @extend_schema(responses=shapes.ClientSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a client; `is_active: false` suspends it."""
        client = clients.update(self.get_object(), self.valid_data(), actor=actor_of(request))
        return Response(shapes.ClientSerializer(client).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Close a client: suspend it and revoke its keys; its history stays."""
        clients.close(self.get_object(), actor=actor_of(request))
        return Response(status=204)


class AuditViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Clients"
    queryset = AuditEntry.objects.all()
    serializer_class = shapes.AuditEntrySerializer
    filterset_class = filters.AuditFilter
