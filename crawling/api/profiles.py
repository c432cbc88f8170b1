from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from accounts.authentication import actor_of
from common.drf.serializers import StrictModelSerializer
from common.drf.views import ClientViewSet
from crawling import profiles
from crawling.models import CrawlProfile


class ProfileSerializer(serializers.ModelSerializer[CrawlProfile]):
    client_id = serializers.UUIDField(read_only=True, allow_null=True)

    class Meta:
        model = CrawlProfile
        fields = ["id", "client_id", *profiles.FIELDS, "created_at", "updated_at"]
        read_only_fields = fields


class ProfileInputSerializer(StrictModelSerializer):
    headers = serializers.DictField(
        child=serializers.CharField(max_length=1000, allow_blank=True), required=False
    )
    extraction = serializers.DictField(required=False)
    chunking = serializers.DictField(required=False)
    max_depth = serializers.IntegerField(min_value=0, max_value=10, required=False)
    max_redirects = serializers.IntegerField(min_value=0, max_value=5, required=False)
    max_page_bytes = serializers.IntegerField(
        min_value=1024, max_value=5 * 1024 * 1024, required=False
    )
    rate_limit_rps = serializers.FloatField(
        min_value=0.001, max_value=1000, allow_null=True, required=False
    )
    respect_robots = serializers.BooleanField(
        required=False, help_text="Only operators may switch it off."
    )

    class Meta:
        model = CrawlProfile
        fields = list(profiles.FIELDS)


class ProfileViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Profiles"
    queryset = CrawlProfile.objects.all()
    serializer_class = ProfileSerializer
    serializer_classes = {
        "create": ProfileInputSerializer,
        "partial_update": ProfileInputSerializer,
    }
    lookup_value_converter = "uuid"

    @extend_schema(responses={201: ProfileSerializer})
    def create(self, request: Request) -> Response:
        """Create a crawl profile; an operator key that names no `client` makes a shared one."""
        data: Any = self.valid_data()
        profile = profiles.create_profile(
            self.client,
            actor=actor_of(request),
            by_operator=self.principal.key.client_id is None,
            **data,
        )
        location = {"Location": f"/api/v1/crawl-profiles/{profile.pk}"}
        return Response(ProfileSerializer(profile).data, status=201, headers=location)

    @extend_schema(responses=ProfileSerializer)
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a crawl profile."""
        data: Any = self.valid_data()
        profile = profiles.update_profile(
            self.get_object(),
            actor=actor_of(request),
            by_operator=self.principal.key.client_id is None,
            **data,
        )
        return Response(ProfileSerializer(profile).data)

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a crawl profile."""
        profiles.delete_profile(self.get_object(), actor=actor_of(request))
        return Response(status=204)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("crawl-profiles", ProfileViewSet, "crawl-profile")
urlpatterns = router.urls
