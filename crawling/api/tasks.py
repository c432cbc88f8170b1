"""Tasks of all clients, as operators see and steer them."""

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
from common.drf.serializers import StrictSerializer
from common.drf.views import OperatorViewSet
from crawling import attempts, control
from crawling.api.filters import AnyTaskFilter
from crawling.api.serializers import TaskSerializer
from crawling.control import MAX_BULK, Order
from crawling.models import CrawlTask
from crawling.recurrence import LONGEST_SECONDS, SHORTEST_SECONDS
from crawling.selections import TaskFilter

MOST_RETRIES = 20


class SteeredTaskFilter(AnyTaskFilter):
    category = filters.ChoiceFilter("error_category", choices=CrawlTask.Category.choices)
    q = filters.CharFilter("url", "icontains", label="Part of the URL.")

    class Meta(AnyTaskFilter.Meta):
        pass


class SteeredTaskSerializer(TaskSerializer):
    client_id = serializers.UUIDField(read_only=True, allow_null=True)
    stored_page_id = serializers.UUIDField(read_only=True, allow_null=True)
    proxy_id = serializers.UUIDField(read_only=True, allow_null=True)

    class Meta(TaskSerializer.Meta):
        fields = [
            *TaskSerializer.Meta.fields,
            "client_id",
            "score",
            "claims",
            "leased_until",
            "from_cache",
            "stored_page_id",
            "proxy_id",
            "is_recurring",
            "crawl_frequency_seconds",
            "next_crawl_at",
            "created_by",
            "updated_at",
        ]
        read_only_fields = fields


class TaskChangeSerializer(StrictSerializer):
    priority = serializers.IntegerField(min_value=1, max_value=10)
    scheduled_at = serializers.DateTimeField(help_text="Not before then.")
    crawl_frequency_seconds = serializers.IntegerField(
        min_value=SHORTEST_SECONDS,
        max_value=LONGEST_SECONDS,
        allow_null=True,
        help_text="How often a stand-alone URL comes round; null: no more.",
    )
    max_retries = serializers.IntegerField(min_value=0, max_value=MOST_RETRIES)


class RestartSerializer(StrictSerializer):
    reset_retry_count = serializers.BooleanField(default=True)
    priority = serializers.IntegerField(min_value=1, max_value=10, required=False)
    scheduled_at = serializers.DateTimeField(required=False)

    def get_fields(self) -> dict[str, Any]:
        # ``from`` is a word of Python.
        step = serializers.ChoiceField(
            choices=["fetch", "parse"],
            default="fetch",
            source="from_",
            help_text="From the network, or from the stored page.",
        )
        return {"from": step, **super().get_fields()}


class ChosenSerializer(StrictSerializer):
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MAX_BULK, required=False
    )
    status = serializers.ChoiceField(choices=CrawlTask.Status.choices, required=False)
    domain = serializers.CharField(max_length=260, required=False, help_text="The host.")
    job = serializers.UUIDField(required=False)
    website = serializers.UUIDField(required=False)
    client = serializers.UUIDField(required=False)
    purpose = serializers.CharField(max_length=16, required=False)
    category = serializers.ChoiceField(choices=CrawlTask.Category.choices, required=False)
    fingerprint = serializers.CharField(max_length=64, required=False)
    q = serializers.CharField(max_length=200, required=False, help_text="Part of the URL.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Name at least one condition.")
        return attrs


class ManySerializer(StrictSerializer):
    filter = ChosenSerializer(help_text="All that is named must hold.")
    limit = serializers.IntegerField(min_value=1, max_value=MAX_BULK, default=1000)
    dry_run = serializers.BooleanField(
        default=False, help_text="Say what would be, change nothing."
    )


class TaskBulkSerializer(RestartSerializer, ManySerializer):
    action = serializers.ChoiceField(choices=list(control.ALLOWED))


class TaskBulkAnswerSerializer(serializers.Serializer[Any]):
    action = serializers.CharField()
    dry_run = serializers.BooleanField()
    matched = serializers.DictField(
        child=serializers.IntegerField(), help_text="Tasks the filter finds, by state."
    )
    changed = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Those that were changed, or would be, by the state they were in.",
    )
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="Which were changed.")


class TaskAttemptSerializer(serializers.Serializer[Any]):
    started_at = serializers.DateTimeField()
    http_status = serializers.IntegerField(allow_null=True)
    response_ms = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    not_modified = serializers.BooleanField()
    proxy_id = serializers.UUIDField(allow_null=True)
    error_category = serializers.CharField(help_text="Empty where it went well.")
    error_message = serializers.CharField()
    fingerprint = serializers.CharField()


class AttemptsSerializer(serializers.Serializer[Any]):
    items = TaskAttemptSerializer(many=True)


class TaskViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, OperatorViewSet):
    tag = "Tasks"
    queryset = CrawlTask.objects.select_related("domain")
    serializer_class = SteeredTaskSerializer
    serializer_classes = {
        "partial_update": TaskChangeSerializer,
        "restart": RestartSerializer,
        "bulk": TaskBulkSerializer,
    }
    filterset_class = SteeredTaskFilter
    ordering_fields = ("created_at",)
    lookup_value_converter = "uuid"

    @extend_schema(responses=SteeredTaskSerializer)
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change when, how urgently and how often a task runs."""
        changes: Any = self.valid_data()
        task = self.get_object()
        return self._shown(control.update_task(task, actor=actor_of(request), **changes))

    @extend_schema(request=None, responses=SteeredTaskSerializer)
    @action(methods=["post"], detail=True)
    def pause(self, request: Request, pk: uuid.UUID) -> Response:
        """Pause a task; a page on its way is dropped within a second."""
        return self._shown(control.pause(self.get_object(), actor=actor_of(request)))

    @extend_schema(request=None, responses=SteeredTaskSerializer)
    @action(methods=["post"], detail=True)
    def resume(self, request: Request, pk: uuid.UUID) -> Response:
        """Go on with a paused task from where the pause found it."""
        return self._shown(control.resume(self.get_object(), actor=actor_of(request)))

    @extend_schema(request=None, responses=SteeredTaskSerializer)
    @action(methods=["post"], detail=True)
    def cancel(self, request: Request, pk: uuid.UUID) -> Response:
        """Cancel a task for good; a page on its way is dropped within a second."""
        return self._shown(control.cancel(self.get_object(), actor=actor_of(request)))

    @extend_schema(responses=SteeredTaskSerializer)
    @action(methods=["post"], detail=True)
    def restart(self, request: Request, pk: uuid.UUID) -> Response:
        """Run a task again, from the network or from its stored page."""
        wanted: Any = self.valid_data()
        task = control.restart(self.get_object(), actor=actor_of(request), **wanted)
        return self._shown(task)

    @extend_schema(responses={200: TaskBulkAnswerSerializer})
    @action(methods=["post"], detail=False)
    def bulk(self, request: Request) -> Response:
        """Do the same to many tasks; those in other states are left alone."""
        data = self.valid_data()
        chosen = TaskFilter(**data.pop("filter"))
        limits = {name: data.pop(name) for name in ("limit", "dry_run")}
        outcome = control.bulk(Order(**data), chosen, actor=actor_of(request), **limits)
        return Response(TaskBulkAnswerSerializer(outcome).data)

    @extend_schema(responses=AttemptsSerializer)
    @action(methods=["get"], detail=True)
    def attempts(self, request: Request, pk: uuid.UUID) -> Response:
        """Show every try of a task, the newest first."""
        tries = attempts.attempts_of(self.get_object())
        return Response(AttemptsSerializer({"items": tries}).data)

    def _shown(self, task: CrawlTask) -> Response:
        return Response(SteeredTaskSerializer(task).data)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("tasks", TaskViewSet, "task")
urlpatterns = router.urls
