from __future__ import annotations

from typing import Any

import django_filters as filters  # type: ignore[import-untyped]
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from accounts.authentication import actor_of
from common.drf.conditional import IF_MATCH, IF_NONE_MATCH, answer, etag_of, require_match
from common.drf.filters import MomentFilter
from common.drf.serializers import StrictSerializer
from common.drf.views import OperatorViewSet
from crawling import domains, robots
from crawling.models import CrawlError, Domain, LedgerEntry
from crawling.refreshing import refresh_robots


class DomainFilter(filters.FilterSet):  # type: ignore[misc]
    q = filters.CharFilter("host", "icontains", label="Part of the host.")

    class Meta:
        model = Domain
        fields = ["is_active", "is_blocked", "breaker_state"]


class LedgerFilter(filters.FilterSet):  # type: ignore[misc]
    started_after = MomentFilter("started_at", "gte")
    started_before = MomentFilter("started_at", "lt")

    class Meta:
        model = LedgerEntry
        fields = ["rule", "http_status", "task_id"]


class DomainSerializer(serializers.ModelSerializer[Domain]):
    class Meta:
        model = Domain
        fields = [
            "host",
            "base_url",
            "parser_name",
            "crawl_delay_seconds",
            "rate_limit_rps",
            "max_concurrent_requests",
            "respect_robots",
            "user_agent",
            "default_crawl_frequency_seconds",
            "proxy_rotation",
            "is_active",
            "is_blocked",
            "blocked_reason",
            "maintenance_start",
            "maintenance_end",
            "maintenance_timezone",
            "robots_status",
            "robots_crawl_delay",
            "robots_fetched_at",
            "robots_due_at",
            "breaker_threshold",
            "breaker_timeout_s",
            "breaker_state",
            "breaker_failures",
            "breaker_opened_at",
            "throttle_seconds",
            "next_allowed_at",
            "last_request_at",
            "success_count",
            "failure_count",
            "response_ms_ewma",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class DomainChangeSerializer(StrictSerializer):
    crawl_delay_seconds = serializers.FloatField(
        min_value=0,
        max_value=domains.LONGEST_DELAY_SECONDS,
        required=False,
        help_text="The gap between two requests.",
    )
    rate_limit_rps = serializers.FloatField(
        min_value=0.001, max_value=domains.FASTEST_RPS, allow_null=True, required=False
    )
    max_concurrent_requests = serializers.IntegerField(min_value=1, max_value=64, required=False)
    respect_robots = serializers.BooleanField(required=False)
    user_agent = serializers.RegexField(
        r"^[ -~]*$",
        max_length=255,
        allow_blank=True,
        required=False,
        help_text="Empty: that of the installation.",
    )
    default_crawl_frequency_seconds = serializers.IntegerField(
        min_value=60, max_value=2**31 - 1, required=False
    )
    parser_name = serializers.CharField(max_length=64, required=False)
    proxy_rotation = serializers.ChoiceField(
        Domain.Rotation.choices,
        required=False,
        help_text="Which of its proxies of the best priority is next.",
    )
    breaker_threshold = serializers.IntegerField(min_value=1, max_value=1000, required=False)
    breaker_timeout_s = serializers.IntegerField(min_value=1, max_value=3600, required=False)
    maintenance_start = serializers.TimeField(allow_null=True, required=False)
    maintenance_end = serializers.TimeField(allow_null=True, required=False)
    maintenance_timezone = serializers.CharField(max_length=64, required=False)
    is_active = serializers.BooleanField(required=False, help_text="False: its pages wait.")


class DomainInputSerializer(DomainChangeSerializer):
    base_url = serializers.CharField(
        max_length=2048, trim_whitespace=False, help_text="Any address of the host."
    )


class BlockSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=255, default="by an operator")


class RobotsSerializer(serializers.ModelSerializer[Domain]):
    url = serializers.CharField(source="robots_url", read_only=True)
    status = serializers.IntegerField(source="robots_status", read_only=True, allow_null=True)
    body = serializers.CharField(source="robots_body", read_only=True)
    fetched_at = serializers.DateTimeField(
        source="robots_fetched_at", read_only=True, allow_null=True
    )
    due_at = serializers.DateTimeField(source="robots_due_at", read_only=True, allow_null=True)
    failures = serializers.IntegerField(
        source="robots_failures", read_only=True, help_text="Times in a row it was unreachable."
    )
    crawl_delay = serializers.FloatField(
        source="robots_crawl_delay", read_only=True, allow_null=True
    )
    sitemaps = serializers.SerializerMethodField()

    class Meta:
        model = Domain
        fields = [
            "host",
            "respect_robots",
            "url",
            "status",
            "body",
            "fetched_at",
            "due_at",
            "failures",
            "crawl_delay",
            "sitemaps",
        ]
        read_only_fields = fields

    def get_sitemaps(self, domain: Domain) -> list[str]:
        return robots.sitemaps_of(domain)


class LastErrorSerializer(serializers.ModelSerializer[CrawlError]):
    class Meta:
        model = CrawlError
        fields = ["task_id", "category", "message", "occurred_at"]
        read_only_fields = fields


class DomainStatsSerializer(serializers.Serializer[Any]):
    host = serializers.CharField()
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()
    success_pct = serializers.FloatField(allow_null=True)
    response_ms_ewma = serializers.FloatField(allow_null=True)
    throttle_seconds = serializers.FloatField()
    breaker_state = serializers.ChoiceField(Domain.Breaker.choices)
    breaker_failures = serializers.IntegerField()
    next_allowed_at = serializers.DateTimeField(allow_null=True)
    tasks = serializers.DictField(child=serializers.IntegerField())
    last_errors = LastErrorSerializer(many=True)


class LedgerSerializer(serializers.ModelSerializer[LedgerEntry]):
    class Meta:
        model = LedgerEntry
        fields = [
            "id",
            "task_id",
            "proxy_id",
            "url",
            "started_at",
            "gap_seconds",
            "wanted_gap_seconds",
            "rule",
            "http_status",
            "bytes",
            "response_ms",
            "not_modified",
            "error_category",
        ]
        read_only_fields = fields


class DomainViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Domains"
    queryset = Domain.objects.defer("robots_body", "robots_other")
    serializer_class = DomainSerializer
    serializer_classes = {
        "create": DomainInputSerializer,
        "partial_update": DomainChangeSerializer,
        "block": BlockSerializer,
    }
    filterset_class = DomainFilter
    ordering = ("host", "id")
    ordering_fields = ("host", "updated_at")
    lookup_field = "host"
    lookup_value_converter = "str"

    @extend_schema(responses={201: DomainSerializer})
    def create(self, request: Request) -> Response:
        """Create a domain before anybody crawls it."""
        data: Any = self.valid_data()
        domain = domains.create_domain(actor=actor_of(request), **data)
        shown = self._shown(domain)
        shown.status_code = 201
        shown["Location"] = f"/api/v1/domains/{domain.host}"
        return shown

    def retrieve(self, request: Request, host: str) -> Response:
        """Show a domain."""
        return self._shown(self.get_object())

    @extend_schema(parameters=[IF_MATCH], responses=DomainSerializer)
    def partial_update(self, request: Request, host: str) -> Response:
        """Change the pace of a domain, or switch it off."""
        domain = self.get_object()
        named = require_match(request, etag_of(domain.updated_at))
        seen_at = domain.updated_at if named else None
        changes: Any = self.valid_data()
        return self._shown(
            domains.update_domain(domain, actor=actor_of(request), seen_at=seen_at, **changes)
        )

    def destroy(self, request: Request, host: str) -> Response:
        """Delete a domain with its past pages."""
        domains.delete_domain(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(responses=DomainSerializer)
    @action(methods=["post"], detail=True)
    def block(self, request: Request, host: str) -> Response:
        """Block a domain: crawls of it stop within a second."""
        reason = self.valid_data()["reason"]
        return self._shown(domains.block(self.get_object(), actor=actor_of(request), reason=reason))

    @extend_schema(request=None, responses=DomainSerializer)
    @action(methods=["post"], detail=True)
    def unblock(self, request: Request, host: str) -> Response:
        """Unblock a domain."""
        return self._shown(domains.unblock(self.get_object(), actor=actor_of(request)))

    @extend_schema(request=None, responses=DomainSerializer)
    @action(methods=["post"], detail=True, url_path="circuit/reset")
    def reset_circuit(self, request: Request, host: str) -> Response:
        """Close the circuit of a domain; it is asked again at its pace."""
        return self._shown(domains.reset_circuit(self.get_object(), actor=actor_of(request)))

    @extend_schema(responses=DomainStatsSerializer)
    @action(detail=True)
    def stats(self, request: Request, host: str) -> Response:
        """Show how a domain has served, what waits for it and its last errors."""
        return Response(DomainStatsSerializer(domains.stats_of(self.get_object())).data)

    def _shown(self, domain: Domain) -> Response:
        # Counters move all the time and are not part of the tag, so there is no 304 either.
        body = DomainSerializer(domain).data
        return Response(body, headers={"ETag": etag_of(domain.updated_at)})


class RobotsViewSet(OperatorViewSet):
    tag = "Domains"
    queryset = Domain.objects.all()
    serializer_class = RobotsSerializer
    lookup_field = "host"

    @extend_schema(parameters=[IF_NONE_MATCH])
    def retrieve(self, request: Request, host: str) -> Response:
        """Show the robots.txt of a domain as it is kept."""
        domain = self.get_object()
        tag = etag_of(domain.robots_fetched_at, domain.robots_due_at, domain.respect_robots)
        return answer(request, RobotsSerializer(domain).data, tag)

    @extend_schema(request=None, responses={200: RobotsSerializer, 202: RobotsSerializer})
    def refresh(self, request: Request, host: str) -> Response:
        """Ask for the robots.txt of a domain again.

        202 where the domain is being crawled or at rest: its next visit asks.
        """
        asked = refresh_robots(self.get_object(), actor=actor_of(request))
        return Response(RobotsSerializer(self.get_object()).data, status=200 if asked else 202)


class LedgerViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Domains"
    queryset = LedgerEntry.objects.all()
    serializer_class = LedgerSerializer
    filterset_class = LedgerFilter
    ordering = ("-started_at", "-id")

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(domain=self._domain())

    def _domain(self) -> Domain:
        return get_object_or_404(Domain.objects.only("id"), host=self.kwargs["host"])

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the requests to a domain, with the gaps they kept."""
        return super().list(request, *args, **kwargs)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("domains", DomainViewSet, "domain")
urlpatterns = [
    *router.urls,
    path(
        "domains/<str:host>/robots",
        RobotsViewSet.as_view({"get": "retrieve", "post": "refresh"}),
        name="domain-robots",
    ),
    path(
        "domains/<str:host>/ledger",
        LedgerViewSet.as_view({"get": "list"}),
        name="domain-ledger",
    ),
]
