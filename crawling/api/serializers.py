from __future__ import annotations

from django.utils import timezone
from rest_framework import serializers

from crawling.models import CrawlJob, CrawlTask


class JobSerializer(serializers.ModelSerializer[CrawlJob]):
    client_id = serializers.UUIDField(read_only=True, allow_null=True)
    progress = serializers.SerializerMethodField(help_text="Pages done, in percent.")
    duration_seconds = serializers.SerializerMethodField(
        help_text="From its start to its end, or until now; null before it starts."
    )

    class Meta:
        model = CrawlJob
        fields = [
            "id",
            "client_id",
            "website_id",
            "kind",
            "triggered_by",
            "status",
            "priority",
            "progress",
            "total",
            "processed",
            "changes",
            "errors",
            "retries",
            "error_summary",
            "request_id",
            "created_at",
            "started_at",
            "completed_at",
            "duration_seconds",
        ]
        read_only_fields = fields

    def get_progress(self, job: CrawlJob) -> int:
        return job.progress

    def get_duration_seconds(self, job: CrawlJob) -> float | None:
        if job.started_at is None:
            return None
        return round(((job.completed_at or timezone.now()) - job.started_at).total_seconds(), 3)


class TaskSerializer(serializers.ModelSerializer[CrawlTask]):
    job_id = serializers.UUIDField(read_only=True)
    domain = serializers.CharField(source="domain.host", read_only=True)
    error_category = serializers.ChoiceField(
        CrawlTask.Category.choices,
        allow_blank=True,
        read_only=True,
        help_text="Empty as long as nothing failed.",
    )

    class Meta:
        model = CrawlTask
        fields = [
            "id",
            "job_id",
            "website_id",
            "object_id",
            "domain",
            "purpose",
            "url",
            "final_url",
            "status",
            "priority",
            "depth",
            "scheduled_at",
            "retry_count",
            "max_retries",
            "error_category",
            "error_message",
            "http_status",
            "response_time_ms",
            "bytes",
            "created_at",
            "completed_at",
        ]
        read_only_fields = fields
