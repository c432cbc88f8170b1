from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf.views import ApiView, ClientViewSet
from notifications import endpoints, redelivery
from notifications.api import serializers as forms
from notifications.catalogue import TYPES
from notifications.models import Delivery, Event, WebhookEndpoint


class WebhookViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    ClientViewSet,
):
    tag = "Webhooks"
    queryset = WebhookEndpoint.objects.select_related("client")
    serializer_class = forms.EndpointSerializer
    serializer_classes = {
        "create": forms.NewEndpointSerializer,
        "partial_update": forms.EndpointChangeSerializer,
        "rotate_secret": forms.RotationInputSerializer,
        "recover": forms.RecoveryInputSerializer,
    }
    lookup_value_converter = "uuid"

    @extend_schema(responses={201: forms.CreatedEndpointSerializer})
    def create(self, request: Request) -> Response:
        """Create a webhook endpoint; its secret is shown in this answer only."""
        endpoint = endpoints.create_endpoint(
            self.required_client, actor=actor_of(request), **self.valid_data()
        )
        return Response(forms.CreatedEndpointSerializer(endpoint).data, status=201)

    @extend_schema(responses=forms.EndpointSerializer)
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a webhook endpoint, or switch it on again."""
        data: Any = self.valid_data()
        endpoint = endpoints.update_endpoint(self.get_object(), actor=actor_of(request), **data)
        return Response(forms.EndpointSerializer(endpoint).data)

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a webhook endpoint with its deliveries."""
        endpoints.delete_endpoint(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(request=None, responses={202: forms.DeliverySerializer})
    @action(methods=["post"], detail=True)
    def test(self, request: Request, pk: uuid.UUID) -> Response:
        """Send a test event to a webhook endpoint."""
        delivery = endpoints.send_test(self.get_object(), actor_of(request))
        return Response(forms.DeliverySerializer(delivery).data, status=202)

    @extend_schema(responses=forms.RotationSerializer)
    @action(methods=["post"], detail=True, url_path="rotate-secret")
    def rotate_secret(self, request: Request, pk: uuid.UUID) -> Response:
        """Give a webhook endpoint a new secret, shown in this answer only."""
        grace_seconds = self.valid_data()["grace_seconds"]
        secret = endpoints.rotate_secret(self.get_object(), grace_seconds, actor_of(request))
        return Response({"secret": secret, "grace_seconds": grace_seconds})

    @extend_schema(responses={202: forms.RecoverySerializer})
    @action(methods=["post"], detail=True)
    def recover(self, request: Request, pk: uuid.UUID) -> Response:
        """Send everything of a time range that a webhook endpoint has not accepted."""
        count = redelivery.recover(self.get_object(), actor=actor_of(request), **self.valid_data())
        return Response({"deliveries": count}, status=202)


class EventViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Webhooks"
    queryset = Event.objects.all()
    serializer_class = forms.EventSerializer
    query_serializers = {"list": forms.EventQuerySerializer}
    ordering = ("sequence", "id")
    lookup_value_converter = "str"

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        after = self.query.get("after") if self.action == "list" else None
        return rows if after is None else rows.filter(sequence__gt=after)

    def get_object(self) -> Event:
        try:
            pk = uuid.UUID(self.kwargs["pk"].removeprefix("evt_"))
        except ValueError as error:
            raise Http404 from error
        event: Event = self.get_queryset().get(pk=pk)
        return event


class EventTypesView(ApiView):
    tag = "Webhooks"

    @extend_schema(responses=forms.EventTypePageSerializer)
    def get(self, request: Request) -> Response:
        """List event types with a schema and an example each."""
        page = {"items": list(TYPES.values()), "next_cursor": None, "has_more": False}
        return Response(forms.EventTypePageSerializer(page).data)


class DeliveryViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Webhooks"
    queryset = Delivery.objects.select_related("event", "endpoint")
    serializer_class = forms.DeliverySerializer
    serializer_classes = {"retrieve": forms.DeliveryDetailSerializer}
    query_serializers = {"list": forms.DeliveryQuerySerializer}
    lookup_value_converter = "uuid"

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        if self.action == "retrieve":
            return rows.prefetch_related("attempts__delivery__event")
        rows = rows.defer("event__body")
        if self.action != "list" or getattr(self, "swagger_fake_view", False):
            return rows
        names = {"status": "status", "endpoint": "endpoint_id", "event_type": "event__type"}
        return rows.filter(**{names[name]: value for name, value in self.query.items()})

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show a delivery with what was sent and answered in each attempt."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(request=None, responses={202: forms.DeliverySerializer})
    @action(methods=["post"], detail=True)
    def redeliver(self, request: Request, pk: uuid.UUID) -> Response:
        """Send a delivery once more, now."""
        delivery = redelivery.redeliver(self.get_object(), actor_of(request))
        return Response(forms.DeliverySerializer(delivery).data, status=202)
