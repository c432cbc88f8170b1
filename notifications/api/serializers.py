from __future__ import annotations

from typing import Any

import orjson
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.drf.serializers import StrictSerializer
from notifications.attempts import sent_headers
from notifications.endpoints import (
    MAX_GRACE_SECONDS,
    MAX_THROTTLE,
    MAX_TIMEOUT_SECONDS,
    URL_CHARS,
    has_own_secret,
    header_names,
)
from notifications.headers import MAX_HEADERS, VALUE_CHARS
from notifications.models import Delivery, DeliveryAttempt, Event, WebhookEndpoint

MAX_SEQUENCE = 2**63 - 1
MAX_PATTERNS = 50


class EndpointSerializer(serializers.ModelSerializer[WebhookEndpoint]):
    client_id = serializers.UUIDField(read_only=True)
    header_names = serializers.SerializerMethodField(
        help_text="Your own headers; their values are never shown."
    )
    has_own_secret = serializers.SerializerMethodField()

    class Meta:
        model = WebhookEndpoint
        fields = [
            "id",
            "client_id",
            "url",
            "events",
            "website_id",
            "description",
            "is_active",
            "disabled_reason",
            "failing_since",
            "timeout_seconds",
            "throttle_per_second",
            "resting_until",
            "header_names",
            "has_own_secret",
            "secret_rotation_expires_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_header_names(self, endpoint: WebhookEndpoint) -> list[str]:
        return header_names(endpoint)

    def get_has_own_secret(self, endpoint: WebhookEndpoint) -> bool:
        return has_own_secret(endpoint)


class CreatedEndpointSerializer(EndpointSerializer):
    secret = serializers.CharField(
        source="secret_current",
        read_only=True,
        help_text="Shown once: keep it. Empty when the client's own secret signs.",
    )

    class Meta(EndpointSerializer.Meta):
        fields = [*EndpointSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class EndpointInputSerializer(StrictSerializer):
    url = serializers.CharField(max_length=URL_CHARS)
    events = serializers.ListField(
        child=serializers.CharField(max_length=64),
        min_length=1,
        max_length=MAX_PATTERNS,
        required=False,
        help_text="`*` for all, `product.*` for a group, or exact types; see `/event-types`.",
    )
    description = serializers.CharField(max_length=255, allow_blank=True, required=False)
    timeout_seconds = serializers.IntegerField(
        min_value=1, max_value=MAX_TIMEOUT_SECONDS, required=False
    )
    throttle_per_second = serializers.IntegerField(
        min_value=1,
        max_value=MAX_THROTTLE,
        allow_null=True,
        required=False,
        help_text="At most so many deliveries a second.",
    )
    headers = serializers.DictField(
        child=serializers.CharField(max_length=VALUE_CHARS, allow_blank=True),
        required=False,
        help_text=f"Up to {MAX_HEADERS} headers that every request carries; kept encrypted. "
        "They replace those given before.",
    )


class NewEndpointSerializer(EndpointInputSerializer):
    website_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Only events of this website."
    )
    own_secret = serializers.BooleanField(
        required=False, help_text="False: the client's secret signs. True by default."
    )


class EndpointChangeSerializer(EndpointInputSerializer):
    is_active = serializers.BooleanField(required=False)


class RotationInputSerializer(StrictSerializer):
    grace_seconds = serializers.IntegerField(
        min_value=0,
        max_value=MAX_GRACE_SECONDS,
        default=3600,
        help_text="How long the old secret goes on signing beside the new one.",
    )


class RotationSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="Shown once: keep it.")
    grace_seconds = serializers.IntegerField()


class RecoveryInputSerializer(StrictSerializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(required=False, help_text="Now, unless given.")


class RecoverySerializer(serializers.Serializer[Any]):
    deliveries = serializers.IntegerField(help_text="How many are being sent.")


class EventSerializer(serializers.Serializer[Event]):
    """An event exactly as it is pushed."""

    id = serializers.CharField()
    type = serializers.CharField()
    api_version = serializers.CharField()
    created_at = serializers.DateTimeField()
    client_id = serializers.UUIDField()
    sequence = serializers.IntegerField()
    data = serializers.DictField()  # type: ignore[assignment]

    def to_representation(self, instance: Event) -> dict[str, Any]:
        envelope: dict[str, Any] = orjson.loads(instance.body)
        return envelope


class EventQuerySerializer(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        min_value=0,
        max_value=MAX_SEQUENCE,
        required=False,
        help_text="Only events with a greater `sequence`.",
    )


class EventTypeSerializer(serializers.Serializer[Any]):
    type = serializers.CharField(source="name")
    description = serializers.CharField()
    example = serializers.DictField()
    schema = serializers.DictField(help_text="JSON Schema of the body.")


class EventTypePageSerializer(serializers.Serializer[Any]):
    items = EventTypeSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    event_id = serializers.CharField(source="event.public_id", read_only=True)
    event_type = serializers.CharField(source="event.type", read_only=True)
    endpoint_id = serializers.UUIDField(read_only=True)
    url = serializers.CharField(source="endpoint.url", read_only=True)
    next_retry_at = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = [
            "id",
            "event_id",
            "event_type",
            "endpoint_id",
            "url",
            "status",
            "attempt_number",
            "next_retry_at",
            "last_http_status",
            "last_error",
            "delivered_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_next_retry_at(self, delivery: Delivery) -> Any:
        return delivery.next_retry_at if delivery.status in Delivery.OPEN else None


class AttemptSerializer(serializers.ModelSerializer[DeliveryAttempt]):
    request_headers = serializers.SerializerMethodField()

    class Meta:
        model = DeliveryAttempt
        fields = [
            "number",
            "attempted_at",
            "url",
            "request_headers",
            "status_code",
            "duration_ms",
            "response_headers",
            "response_body",
            "error",
        ]
        read_only_fields = fields

    def get_request_headers(self, attempt: DeliveryAttempt) -> dict[str, str]:
        return sent_headers(attempt)


class DeliveryDetailSerializer(DeliverySerializer):
    request_body = serializers.CharField(source="event.body", read_only=True)
    attempts = AttemptSerializer(many=True, read_only=True)

    class Meta(DeliverySerializer.Meta):
        fields = [*DeliverySerializer.Meta.fields, "request_body", "attempts"]
        read_only_fields = fields


class DeliveryQuerySerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=Delivery.Status.choices, required=False)
    endpoint = serializers.UUIDField(required=False)
    event_type = serializers.CharField(max_length=64, required=False)
