from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts import webhook_secrets
from accounts.keys import DEFAULT_RPM
from accounts.models import ApiKey, AuditEntry, Client
from common.drf.serializers import StrictModelSerializer, StrictSerializer

MAX_RPM = 100_000


class ClientSerializer(serializers.ModelSerializer[Client]):
    class Meta:
        model = Client
        fields = [
            "id",
            "name",
            "email",
            "subscription_tier",
            "is_active",
            "max_websites",
            "max_products_per_website",
            "timezone",
            "secret_rotation_expires_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class ClientWriteSerializer(StrictModelSerializer):
    class Meta:
        model = Client
        fields = [
            "name",
            "email",
            "subscription_tier",
            "is_active",
            "max_websites",
            "max_products_per_website",
            "timezone",
        ]
        extra_kwargs = {
            # The job module answers duplicates, with a code of their own.
            "email": {"validators": []},
            "max_products_per_website": {"max_value": 1_000_000},
        }


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    client_id = serializers.UUIDField(read_only=True, allow_null=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(ApiKey.Scope.choices), read_only=True
    )
    is_live = serializers.BooleanField(read_only=True)

    class Meta:
        model = ApiKey
        fields = [
            "id",
            "client_id",
            "name",
            "prefix",
            "scopes",
            "rate_limit_rpm",
            "expires_at",
            "last_used_at",
            "invalidated_at",
            "is_live",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class NewApiKeySerializer(ApiKeySerializer):
    """The only answers that hold the key itself."""

    key = serializers.CharField(read_only=True, help_text="Shown once: store it now.")

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]
        read_only_fields = fields


class ApiKeyWriteSerializer(StrictSerializer):
    name = serializers.CharField(max_length=255)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(ApiKey.Scope.choices), min_length=1, max_length=3
    )
    rate_limit_rpm = serializers.IntegerField(
        min_value=1, max_value=MAX_RPM, required=False, default=DEFAULT_RPM
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class RotateSecretSerializer(StrictSerializer):
    grace_seconds = serializers.IntegerField(
        min_value=0,
        max_value=webhook_secrets.MAX_GRACE_SECONDS,
        default=webhook_secrets.DEFAULT_GRACE_SECONDS,
        help_text="How long the secret before signs along.",
    )


class RotatedSecretSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="Shown once: store it now.")
    previous_expires_at = serializers.DateTimeField(allow_null=True)


class LimitsSerializer(serializers.Serializer[Any]):
    max_websites = serializers.IntegerField()
    max_products_per_website = serializers.IntegerField()
    rate_limit_rpm = serializers.IntegerField()


class MeSerializer(serializers.Serializer[Any]):
    client = ClientSerializer(allow_null=True, help_text="Null for an operator key.")
    key = ApiKeySerializer()
    limits = LimitsSerializer(allow_null=True)
    usage = serializers.DictField(child=serializers.IntegerField())


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    client_id = serializers.UUIDField(read_only=True, allow_null=True)
    before = serializers.DictField(read_only=True)
    after = serializers.DictField(read_only=True)

    class Meta:
        model = AuditEntry
        fields = [
            "id",
            "actor_kind",
            "actor_id",
            "actor_name",
            "client_id",
            "verb",
            "object_type",
            "object_id",
            "object_name",
            "before",
            "after",
            "request_id",
            "created_at",
        ]
        read_only_fields = fields
