"""Errors in groups, and the dead letters."""

from __future__ import annotations

import uuid
from typing import Any

import django_filters as filters  # type: ignore[import-untyped]
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from accounts.authentication import actor_of
from common.drf.filters import MomentFilter
from common.drf.views import OperatorViewSet
from crawling import failures
from crawling.api.tasks import (
    ManySerializer,
    SteeredTaskFilter,
    SteeredTaskSerializer,
    TaskBulkAnswerSerializer,
)
from crawling.models import CrawlError, CrawlTask
from crawling.selections import TaskFilter


class ErrorFilter(filters.FilterSet):  # type: ignore[misc]
    domain = filters.CharFilter("domain__host", label="The host.")
    occurred_after = MomentFilter("occurred_at", "gte")

    class Meta:
        model = CrawlError
        fields = ["category", "fingerprint"]


class DeadLetterFilter(SteeredTaskFilter):
    status = None
    fingerprint = filters.CharFilter(method="of_group", label="Of this group of errors.")

    class Meta(SteeredTaskFilter.Meta):
        fields = ["error_category"]

    def of_group(self, rows: Any, name: str, value: str) -> Any:
        return rows.filter(id__in=TaskFilter(fingerprint=value).rows().values("id"))


class ErrorGroupSerializer(serializers.Serializer[Any]):
    fingerprint = serializers.CharField()
    category = serializers.ChoiceField(choices=CrawlTask.Category.choices)
    domain = serializers.CharField(source="host")
    count = serializers.IntegerField(help_text="How often it happened.")
    dead_letters = serializers.IntegerField(
        source="dead", help_text="Tasks that wait to be retried."
    )
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    sample = serializers.CharField(help_text="The newest message.")


class ErrorGroupViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Failures"
    queryset = CrawlError.objects.all()
    serializer_class = ErrorGroupSerializer
    filterset_class = ErrorFilter
    ordering = ("-last_at", "fingerprint", "host")

    def filter_queryset(self, queryset: Any) -> Any:
        return failures.error_groups(super().filter_queryset(queryset))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List errors: the same trouble of one domain is one line, the freshest first."""
        return super().list(request, *args, **kwargs)


class DeadLetterViewSet(mixins.ListModelMixin, OperatorViewSet):
    tag = "Failures"
    queryset = failures.dead_letters().select_related("domain")
    serializer_class = SteeredTaskSerializer
    serializer_classes = {"bulk": ManySerializer}
    filterset_class = DeadLetterFilter
    ordering = ("-completed_at", "-id")
    lookup_value_converter = "uuid"

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the dead letters: tasks that failed for good, the latest first."""
        return super().list(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        # One that is named but lives again is told so, not hidden.
        return super().get_queryset() if self.is_list else CrawlTask.objects.all()

    @extend_schema(request=None, responses=SteeredTaskSerializer)
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: uuid.UUID) -> Response:
        """Try a dead letter again, from the network and with all its tries."""
        task = failures.retry(self.get_object(), actor=actor_of(request))
        return Response(SteeredTaskSerializer(task).data)

    @extend_schema(responses={200: TaskBulkAnswerSerializer})
    @action(methods=["post"], detail=False)
    def bulk(self, request: Request) -> Response:
        """Try many dead letters again: a group by its fingerprint, or any filter."""
        data: Any = self.valid_data()
        chosen = TaskFilter(**data.pop("filter"))
        outcome = failures.retry_many(chosen, actor=actor_of(request), **data)
        return Response(TaskBulkAnswerSerializer(outcome).data)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("errors", ErrorGroupViewSet, "error")
router.register("dead-letters", DeadLetterViewSet, "dead-letter")
urlpatterns = router.urls
