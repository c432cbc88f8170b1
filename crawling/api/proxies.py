"""The proxies of the installation, and which domain is crawled through which."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import django_filters as filters  # type: ignore[import-untyped]
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from accounts.authentication import actor_of
from common.drf.serializers import StrictSerializer
from common.drf.views import OperatorViewSet
from common.errors import Invalid
from crawling import proxy_pool
from crawling.models import Domain, DomainProxy, Proxy

PROXY = OpenApiExample(
    "With a login",
    {
        "protocol": "socks5",
        "host": "proxy.example.com",
        "port": 1080,
        "username": "obsrv",
        "password": "a secret",
        "pool": "residential",
        "country_code": "DE",
        "monthly_cost": "12.50",
    },
    request_only=True,
)
PASTE = OpenApiExample(
    "A list of a provider, tried first",
    {
        "text": "192.0.2.10:8000\n192.0.2.11:8000:obsrv:a secret\nsocks5://proxy.example.com:1080",
        "pool": "datacenter",
        "dry_run": True,
    },
    request_only=True,
)
ASSIGN = OpenApiExample(
    "The last resort",
    {"proxy_id": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d", "priority": 10},
    request_only=True,
)
HEALTH = [
    "success_count",
    "failure_count",
    "success_pct",
    "consecutive_failures",
    "response_ms_ewma",
    "last_used_at",
    "last_success_at",
    "last_failure_at",
    "resting_until",
]
ROW = ["created_at", "updated_at"]


class ProxyFilter(filters.FilterSet):  # type: ignore[misc]
    q = filters.CharFilter("host", "icontains", label="Part of the host.")
    domain = filters.CharFilter("domain_proxies__domain__host", label="Assigned to this host.")

    class Meta:
        model = Proxy
        fields = ["protocol", "pool", "country_code", "provider", "is_active"]


class DomainProxyFilter(filters.FilterSet):  # type: ignore[misc]
    class Meta:
        model = DomainProxy
        fields = ["is_active"]


class ProxySerializer(serializers.ModelSerializer[Proxy]):
    has_password = serializers.SerializerMethodField(help_text="The password is never shown.")
    success_pct = serializers.FloatField(read_only=True, allow_null=True)

    class Meta:
        model = Proxy
        fields = [
            "id",
            *(name for name in proxy_pool.FIELDS if name not in proxy_pool.SECRETS),
            "has_password",
            "is_active",
            "disabled_reason",
            *HEALTH,
            *ROW,
        ]
        read_only_fields = fields

    def get_has_password(self, proxy: Proxy) -> bool:
        return bool(proxy.password)


class ProxyDefaultsSerializer(StrictSerializer):
    """What a list of proxies may have in common."""

    protocol = serializers.ChoiceField(Proxy.Protocol.choices, required=False)
    pool = serializers.CharField(max_length=64, allow_blank=True, required=False)
    country_code = serializers.RegexField(
        r"^([A-Za-z]{2})?$", allow_blank=True, required=False, help_text="ISO 3166: DE, US."
    )
    city = serializers.CharField(max_length=100, allow_blank=True, required=False)
    provider = serializers.CharField(max_length=100, allow_blank=True, required=False)
    monthly_cost = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=0, allow_null=True, required=False
    )
    max_requests_per_hour = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, allow_null=True, required=False
    )


class ProxyInputSerializer(ProxyDefaultsSerializer):
    host = serializers.CharField(max_length=255, help_text="A name or an address.")
    port = serializers.IntegerField(min_value=1, max_value=65535)
    username = serializers.CharField(max_length=255, allow_blank=True, required=False)
    password = serializers.CharField(
        max_length=255,
        allow_blank=True,
        required=False,
        trim_whitespace=False,
        help_text="Kept encrypted and never shown again.",
    )


class DisableSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=255, default="by an operator")


class TestSerializer(StrictSerializer):
    url = serializers.CharField(
        max_length=2048, default="", help_text="What to fetch; else that of the installation."
    )


class TrialSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    status = serializers.IntegerField(allow_null=True, help_text="What the page answered.")
    elapsed_ms = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(help_text="Empty where it went well.")


class ImportSerializer(ProxyDefaultsSerializer):
    text = serializers.CharField(
        trim_whitespace=False,
        help_text=(
            "One a line: host:port, host:port:user:password or protocol://user:password@host:port."
            f" Empty lines and those with # are skipped; at most {proxy_pool.MAX_IMPORT_LINES:,}."
        ),
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Say what would be, change nothing."
    )


class ImportedLineSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(source="number")
    result = serializers.ChoiceField(["created", "duplicate", "invalid"])
    proxy = serializers.CharField(help_text="Without its login; empty where it cannot be read.")
    id = serializers.UUIDField(allow_null=True)
    detail = serializers.CharField(help_text="What is wrong with the line.")


class ImportedSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    created = serializers.IntegerField()
    duplicate = serializers.IntegerField()
    invalid = serializers.IntegerField()
    items = ImportedLineSerializer(many=True)


class DomainProxySerializer(serializers.ModelSerializer[DomainProxy]):
    proxy_id = serializers.UUIDField(read_only=True)
    proxy = serializers.CharField(read_only=True, help_text="Its address, without the login.")
    proxy_is_active = serializers.BooleanField(source="proxy.is_active", read_only=True)
    success_pct = serializers.FloatField(read_only=True, allow_null=True)

    class Meta:
        model = DomainProxy
        fields = ["proxy_id", "proxy", "proxy_is_active", "priority", "is_active", *HEALTH, *ROW]
        read_only_fields = fields


class MappingChangeSerializer(StrictSerializer):
    priority = serializers.IntegerField(
        min_value=1, max_value=10, required=False, help_text="1 is preferred, 10 the last resort."
    )
    is_active = serializers.BooleanField(
        required=False, help_text="True: use it again, with its failures forgotten."
    )


class AssignSerializer(StrictSerializer):
    proxy_id = serializers.UUIDField()
    priority = serializers.IntegerField(
        min_value=1, max_value=10, default=5, help_text="1 is preferred, 10 the last resort."
    )


class ProxyViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, OperatorViewSet):
    tag = "Proxies"
    queryset = Proxy.objects.all()
    serializer_class = ProxySerializer
    serializer_classes = {
        "create": ProxyInputSerializer,
        "partial_update": ProxyInputSerializer,
        "disable": DisableSerializer,
        "test": TestSerializer,
        "import_lines": ImportSerializer,
    }
    filterset_class = ProxyFilter
    ordering_fields = ("created_at", "updated_at", "host")
    lookup_value_converter = "uuid"

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List proxies with their health."""
        return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show a proxy."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(responses={201: ProxySerializer}, examples=[PROXY])
    def create(self, request: Request) -> Response:
        """Create a proxy; it serves once it is assigned to a domain."""
        data: Any = self.valid_data()
        proxy = proxy_pool.create_proxy(actor=actor_of(request), **data)
        shown = self._shown(proxy)
        shown.status_code = 201
        shown["Location"] = f"/api/v1/proxies/{proxy.pk}"
        return shown

    @extend_schema(responses=ProxySerializer)
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a proxy."""
        changes: Any = self.valid_data()
        proxy = self.get_object()
        return self._shown(proxy_pool.update_proxy(proxy, actor=actor_of(request), **changes))

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a proxy with its assignments."""
        proxy_pool.delete_proxy(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(request=None, responses=ProxySerializer)
    @action(methods=["post"], detail=True)
    def enable(self, request: Request, pk: uuid.UUID) -> Response:
        """Use a proxy again, with its failures forgotten."""
        return self._shown(proxy_pool.enable(self.get_object(), actor=actor_of(request)))

    @extend_schema(responses=ProxySerializer)
    @action(methods=["post"], detail=True)
    def disable(self, request: Request, pk: uuid.UUID) -> Response:
        """Use a proxy no more, for any domain."""
        reason = self.valid_data()["reason"]
        proxy = self.get_object()
        return self._shown(proxy_pool.disable(proxy, actor=actor_of(request), reason=reason))

    @extend_schema(responses={200: TrialSerializer})
    @action(methods=["post"], detail=True)
    def test(self, request: Request, pk: uuid.UUID) -> Response:
        """Fetch a page through a proxy now; success ends its rest."""
        url = self.valid_data()["url"]
        trial = proxy_pool.try_proxy(self.get_object(), actor=actor_of(request), url=url)
        return Response(TrialSerializer(trial).data)

    @extend_schema(responses={200: ImportedSerializer}, examples=[PASTE])
    @action(methods=["post"], detail=False, url_path="import")
    def import_lines(self, request: Request) -> Response:
        """Import a list of proxies as providers send it; a bad line stops no other."""
        data: Any = self.valid_data()
        lines = proxy_pool.import_proxies(data.pop("text"), actor=actor_of(request), **data)
        counts = Counter(line.result for line in lines)
        kinds = {kind: counts[kind] for kind in ("created", "duplicate", "invalid")}
        body = {"dry_run": data["dry_run"], "items": lines, **kinds}
        return Response(ImportedSerializer(body).data)

    def _shown(self, proxy: Proxy) -> Response:
        return Response(ProxySerializer(proxy).data)


class DomainProxyViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Domains"
    queryset = DomainProxy.objects.select_related("proxy")
    serializer_class = DomainProxySerializer
    serializer_classes = {
        "create": AssignSerializer,
        "partial_update": MappingChangeSerializer,
    }
    filterset_class = DomainProxyFilter
    ordering = ("priority", "id")
    lookup_field = "proxy_id"

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(domain=self._domain())

    def _domain(self) -> Domain:
        return get_object_or_404(Domain.objects.only("id", "host"), host=self.kwargs["host"])

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the proxies of a domain, the preferred first, with how they serve it."""
        return super().list(request, *args, **kwargs)

    @extend_schema(responses={201: DomainProxySerializer}, examples=[ASSIGN])
    def create(self, request: Request, host: str) -> Response:
        """Assign a proxy to a domain, which is then crawled through its proxies only."""
        domain = self._domain()
        data: Any = self.valid_data()
        proxy = Proxy.objects.filter(pk=data.pop("proxy_id")).first()
        if proxy is None:
            raise Invalid("There is no such proxy: list them at /api/v1/proxies.", attr="proxy_id")
        mapping = proxy_pool.assign(domain, proxy, actor=actor_of(request), **data)
        location = {"Location": f"/api/v1/domains/{host}/proxies/{proxy.pk}"}
        return Response(DomainProxySerializer(mapping).data, status=201, headers=location)

    @extend_schema(responses=DomainProxySerializer)
    def partial_update(self, request: Request, host: str, proxy_id: uuid.UUID) -> Response:
        """Change how a domain uses a proxy."""
        mapping = self.get_object()
        changes: Any = self.valid_data()
        changed = proxy_pool.update_mapping(mapping, actor=actor_of(request), **changes)
        return Response(DomainProxySerializer(changed).data)

    def destroy(self, request: Request, host: str, proxy_id: uuid.UUID) -> Response:
        """Take a proxy from a domain; without any left it is crawled directly."""
        proxy_pool.unassign(self.get_object(), actor=actor_of(request))
        return Response(status=204)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("proxies", ProxyViewSet, "proxy")
urlpatterns = [
    *router.urls,
    path(
        "domains/<str:host>/proxies",
        DomainProxyViewSet.as_view({"get": "list", "post": "create"}),
        name="domain-proxies",
    ),
    path(
        "domains/<str:host>/proxies/<uuid:proxy_id>",
        DomainProxyViewSet.as_view({"patch": "partial_update", "delete": "destroy"}),
        name="domain-proxy",
    ),
]
