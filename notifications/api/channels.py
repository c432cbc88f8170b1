from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf.serializers import StrictSerializer
from common.drf.views import ClientViewSet
from notifications import channels
from notifications.api.serializers import MAX_PATTERNS
from notifications.messengers import URL_CHARS
from notifications.models import Channel

TEMPLATE_CHARS = 4000


class ChannelSerializer(serializers.ModelSerializer[Channel]):
    client_id = serializers.UUIDField(read_only=True)
    service = serializers.SerializerMethodField(
        help_text="The start of the URL; the rest is never shown."
    )

    class Meta:
        model = Channel
        fields = [
            "id",
            "client_id",
            "name",
            "service",
            "events",
            "digest",
            "quiet_from",
            "quiet_until",
            "title_template",
            "body_template",
            "is_active",
            "last_sent_at",
            "last_error",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_service(self, channel: Channel) -> str:
        return channels.service_of(channel)


class ChannelInputSerializer(StrictSerializer):
    name = serializers.CharField(max_length=255)
    url = serializers.CharField(
        max_length=URL_CHARS, help_text="An Apprise URL, such as `mailtos://…` or `slack://…`."
    )
    events = serializers.ListField(
        child=serializers.CharField(max_length=64),
        min_length=1,
        max_length=MAX_PATTERNS,
        required=False,
    )
    digest = serializers.ChoiceField(choices=Channel.Digest.choices, required=False)
    quiet_from = serializers.TimeField(
        required=False, allow_null=True, help_text="In the client's time zone."
    )
    quiet_until = serializers.TimeField(required=False, allow_null=True)
    title_template = serializers.CharField(
        max_length=255,
        required=False,
        allow_blank=True,
        help_text="Text with slots such as `{object.name}` or `{change.new}`.",
    )
    body_template = serializers.CharField(
        max_length=TEMPLATE_CHARS, required=False, allow_blank=True
    )
    is_active = serializers.BooleanField(required=False)


class ChannelTestSerializer(serializers.Serializer[Any]):
    sent = serializers.BooleanField()


class ChannelViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Channels"
    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    serializer_classes = {
        "create": ChannelInputSerializer,
        "partial_update": ChannelInputSerializer,
    }
    lookup_value_converter = "uuid"

    @extend_schema(responses={201: ChannelSerializer})
    def create(self, request: Request) -> Response:
        """Create a channel to people: mail or a messenger."""
        data: Any = self.valid_data()
        channel = channels.create_channel(self.required_client, actor=actor_of(request), **data)
        return Response(ChannelSerializer(channel).data, status=201)

    @extend_schema(responses=ChannelSerializer)
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a channel."""
        data: Any = self.valid_data()
        channel = channels.update_channel(self.get_object(), actor=actor_of(request), **data)
        return Response(ChannelSerializer(channel).data)

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a channel."""
        channels.delete_channel(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(request=None, responses=ChannelTestSerializer)
    @action(methods=["post"], detail=True)
    def test(self, request: Request, pk: uuid.UUID) -> Response:
        """Send a message to a channel now."""
        channels.send_test(self.get_object(), actor=actor_of(request))
        return Response({"sent": True})
