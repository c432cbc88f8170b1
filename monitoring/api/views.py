from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Subquery
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf import conditional
from common.drf.conditional import IF_MATCH, IF_NONE_MATCH, etag_of, require_match
from common.drf.views import ClientViewSet
from crawling.api.serializers import JobSerializer
from crawling.api.views import accepted
from crawling.models import CrawlJob
from monitoring import approval, reparsing, reviews, schedules, websites
from monitoring.api import filters
from monitoring.api import serializers as shapes
from monitoring.api.discovery_shapes import DiscoverySerializer, FoundUrlSerializer
from monitoring.api.imports import ImportQuery, WebsiteImports
from monitoring.api.reparsing import REPARSE, ReparseSerializer, compared
from monitoring.models import FoundUrl, Product, Website
from monitoring.registration import Registration, register_website
from monitoring.runs import SOURCES
from notifications.models import WebhookEndpoint

REGISTER = OpenApiExample(
    "A shop",
    {
        "base_url": "https://shop.example.com/",
        "seed_urls": ["https://shop.example.com/sale", "https://shop.example.com/lamps"],
        "name": "Example Shop",
        "crawl_frequency_minutes": 360,
        "price_change_threshold_pct": "2.50",
        "retention_days": 180,
        "auto_approve": {"min_score": 0.9, "exclude": ["/gift-cards/*"]},
        "banned_patterns": ["/outlet/*"],
        "webhook_endpoint_url": "https://hooks.example.com/obsrv",
    },
    request_only=True,
)
CHANGE = OpenApiExample(
    "Tell smaller steps, keep history longer",
    {"price_change_threshold_pct": "0.50", "retention_days": 365},
    request_only=True,
)
BY_CRON = OpenApiExample(
    "Working days at 7 and 15 o'clock",
    {"cron": "0 7,15 * * 1-5", "timezone": "Europe/Berlin"},
    request_only=True,
)
BY_INTERVAL = OpenApiExample("Every half hour", {"every_minutes": 30}, request_only=True)
REGISTER_BRIEFLY = OpenApiExample(
    "The least", {"base_url": "https://shop.example.com/"}, request_only=True
)
BULK_BY_ID = OpenApiExample(
    "Chosen candidates",
    {
        "action": "approve",
        "ids": ["0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d", "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3e"],
    },
    request_only=True,
)
BULK_BY_FILTER = OpenApiExample(
    "All likely ones of a website, tried first",
    {
        "action": "approve",
        "filter": {"website": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d", "score_min": 0.8},
        "dry_run": True,
    },
    request_only=True,
)
DISCOVER = OpenApiExample(
    "A short look at the sitemaps",
    {"max_pages": 50, "sources": ["sitemap"]},
    request_only=True,
)
_webhook = WebhookEndpoint.objects.filter(website_id=OuterRef("pk")).values("url")[:1]


class WebsiteViewSet(WebsiteImports, mixins.ListModelMixin, ClientViewSet):
    tag = "Websites"
    queryset = schedules.with_last_slot(
        Website.objects.select_related(
            "client", "periodic_task__crontab", "periodic_task__interval"
        ).annotate(webhook_endpoint_url=Subquery(_webhook))
    )
    serializer_class = shapes.WebsiteSerializer
    serializer_classes = {
        "create": shapes.RegistrationSerializer,
        "partial_update": shapes.WebsiteChangeSerializer,
        "set_schedule": shapes.ScheduleInputSerializer,
        "reparse": ReparseSerializer,
        "discover": DiscoverySerializer,
    }
    query_serializers = {"import_list": ImportQuery}
    filterset_class = filters.WebsiteFilter
    ordering_fields = ("created_at", "name", "updated_at")
    lookup_value_converter = "uuid"

    @extend_schema(
        responses={201: shapes.RegisteredWebsiteSerializer}, examples=[REGISTER, REGISTER_BRIEFLY]
    )
    def create(self, request: Request) -> Response:
        """Register a website; discovery of its products starts at once."""
        wanted = Registration(**self.valid_data())
        made = register_website(self.required_client, wanted, actor=actor_of(request))
        found = CrawlJob.objects.filter(website_id=made.pk, kind=CrawlJob.Kind.DISCOVERY)
        website = self.get_queryset().get(pk=made.pk)
        website.discovery_job_id = found.values_list("pk", flat=True).first()
        body = shapes.RegisteredWebsiteSerializer(website).data
        location = {"Location": f"/api/v1/websites/{made.pk}", "ETag": _tag(website)}
        return Response(body, status=201, headers=location)

    @extend_schema(parameters=[IF_NONE_MATCH], responses=shapes.WebsiteSerializer)
    def retrieve(self, request: Request, pk: uuid.UUID) -> Response:
        """Show a website."""
        return self._shown(self.get_object())

    @extend_schema(parameters=[IF_MATCH], responses=shapes.WebsiteSerializer, examples=[CHANGE])
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a website."""
        website = self.get_object()
        seen_at = website.updated_at if require_match(request, _tag(website)) else None
        changes: Any = self.valid_data()
        websites.update_website(website, actor=actor_of(request), seen_at=seen_at, **changes)
        return self._shown(self.get_object())

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a website with its products and their history."""
        websites.delete_website(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(responses={202: JobSerializer}, examples=[DISCOVER])
    @action(methods=["post"], detail=True)
    def discover(self, request: Request, pk: uuid.UUID) -> Response:
        """Look for products now; without a body everywhere, up to the website's limit."""
        website, data = self.get_object(), self.valid_data()
        sources = sorted(data.get("sources") or SOURCES)
        job = websites.discover_now(
            website, actor=actor_of(request), max_pages=data.get("max_pages"), sources=sources
        )
        return accepted(job)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(methods=["post"], detail=True)
    def crawl(self, request: Request, pk: uuid.UUID) -> Response:
        """Crawl the watched products now."""
        return accepted(websites.crawl_now(self.get_object(), actor=actor_of(request)))

    @REPARSE
    @action(methods=["post"], detail=True)
    def reparse(self, request: Request, pk: uuid.UUID) -> Response:
        """Read the newest stored pages of a website's products again, with the parser of today.

        `dry_run` shows what would differ for up to `limit` products, and changes nothing.
        History stays as it was written; nobody is told old news.
        """
        website, wanted = self.get_object(), self.valid_data()
        if wanted["dry_run"]:
            return compared(reparsing.compare_website(website, limit=wanted["limit"]))
        return accepted(reparsing.reparse_website(website, actor=actor_of(request)))

    @extend_schema(request=None, responses=shapes.WebsiteSerializer)
    @action(methods=["post"], detail=True)
    def pause(self, request: Request, pk: uuid.UUID) -> Response:
        """Pause a website: no scheduled runs until it is resumed."""
        websites.pause(self.get_object(), actor=actor_of(request))
        return self._shown(self.get_object())

    @extend_schema(request=None, responses=shapes.WebsiteSerializer)
    @action(methods=["post"], detail=True)
    def resume(self, request: Request, pk: uuid.UUID) -> Response:
        """Resume a website that was paused or has failed."""
        websites.resume(self.get_object(), actor=actor_of(request))
        return self._shown(self.get_object())

    @extend_schema(responses=shapes.ScheduleSerializer)
    @action(methods=["get"], detail=True)
    def schedule(self, request: Request, pk: uuid.UUID) -> Response:
        """Show when a website is crawled."""
        return Response(shapes.ScheduleSerializer.of(self.get_object()))

    @extend_schema(responses=shapes.ScheduleSerializer, examples=[BY_CRON, BY_INTERVAL])
    @schedule.mapping.put
    def set_schedule(self, request: Request, pk: uuid.UUID) -> Response:
        """Crawl a website by a cron line or at an interval.

        Between two runs must be 15 minutes, or what this installation sets
        (`SCHEDULE_MIN_SECONDS`); operator keys may go down to 10 seconds.
        """
        data = self.valid_data()
        zone = data.pop("timezone", None)
        website = self.get_object()
        mine = self.principal.key.client_id is not None
        data["shortest"] = settings.SCHEDULE_MIN_SECONDS if mine else schedules.SHORTEST_SECONDS
        schedules.set_schedule(website, actor=actor_of(request), zone=zone, **data)
        return Response(shapes.ScheduleSerializer.of(website))

    @extend_schema(responses={200: shapes.ScheduleSerializer})
    @schedule.mapping.delete
    def reset_schedule(self, request: Request, pk: uuid.UUID) -> Response:
        """Crawl a website by its crawl_frequency_minutes again."""
        website = self.get_object()
        schedules.reset_schedule(website, actor=actor_of(request))
        return Response(shapes.ScheduleSerializer.of(website))

    def _shown(self, website: Website) -> Response:
        body = shapes.WebsiteSerializer(website).data
        return conditional.answer(self.request, body, _tag(website))


def _tag(website: Any) -> str:
    task = website.periodic_task
    changed_at = task.date_changed if task else None
    return etag_of(website.updated_at, website.webhook_endpoint_url, changed_at)


class CandidateViewSet(mixins.ListModelMixin, ClientViewSet):
    tag = "Candidates"
    queryset = Product.objects.defer("description", "attributes")
    serializer_class = shapes.CandidateSerializer
    serializer_classes = {"bulk": shapes.BulkSerializer}
    filterset_class = filters.CandidateFilter
    ordering_fields = ("created_at", "discovery_score")
    lookup_value_converter = "uuid"

    def filter_queryset(self, queryset: Any) -> Any:
        # Filters say what is listed; a candidate that is named is meant, whatever its state.
        return super().filter_queryset(queryset) if self.is_list else queryset

    @extend_schema(request=None, responses=shapes.CandidateSerializer)
    @action(methods=["post"], detail=True)
    def approve(self, request: Request, pk: uuid.UUID) -> Response:
        """Approve a candidate: it is watched from now on."""
        product = approval.approve_one(self.get_object(), actor=actor_of(request))
        return Response(shapes.CandidateSerializer(product).data)

    @extend_schema(request=None, responses=shapes.CandidateSerializer)
    @action(methods=["post"], detail=True)
    def reject(self, request: Request, pk: uuid.UUID) -> Response:
        """Reject a candidate: it stays rejected when it is found again."""
        product = approval.reject_one(self.get_object(), actor=actor_of(request))
        return Response(shapes.CandidateSerializer(product).data)

    @extend_schema(
        responses={200: shapes.BulkAnswerSerializer}, examples=[BULK_BY_ID, BULK_BY_FILTER]
    )
    @action(methods=["post"], detail=False)
    def bulk(self, request: Request) -> Response:
        """Approve or reject many candidates; the answer has a line for each."""
        data = self.valid_data()
        visible = self.get_queryset()
        ids = data.get("ids") or reviews.pending_ids(visible, **data["filter"])
        outcomes = reviews.decide(
            data["action"], ids, visible, actor=actor_of(request), dry_run=data["dry_run"]
        )
        done = sum(outcome.result in ("approved", "rejected") for outcome in outcomes)
        answer = {"dry_run": data["dry_run"], "done": done, "items": outcomes}
        return Response(shapes.BulkAnswerSerializer(answer).data)


class WebsiteCandidateViewSet(CandidateViewSet):
    @cached_property
    def website(self) -> Website:
        visible = super().owned(Website.objects.only("id"))
        found: Website = get_object_or_404(visible, pk=self.kwargs["website_id"])
        return found

    def owned(self, rows: Any) -> Any:
        return rows.filter(website=self.website)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the candidates of a website."""
        return super().list(request, *args, **kwargs)


class FoundUrlViewSet(mixins.ListModelMixin, ClientViewSet):
    """Below ``/websites/{id}``."""

    tag = "Websites"
    queryset = FoundUrl.objects.all()
    serializer_class = FoundUrlSerializer
    filterset_class = filters.FoundUrlFilter
    ordering = ("-last_seen_at", "-id")

    def owned(self, rows: Any) -> Any:
        visible = super().owned(Website.objects.only("id"))
        return rows.filter(website=get_object_or_404(visible, pk=self.kwargs["website_id"]))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the URLs that discovery found, and why each was read or not."""
        return super().list(request, *args, **kwargs)
