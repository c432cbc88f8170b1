from __future__ import annotations

from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.models import Record


class CrawlJobQuerySet(models.QuerySet["CrawlJob"]):
    def for_client(self, client: Client) -> CrawlJobQuerySet:
        return self.filter(client=client)

    def live(self) -> CrawlJobQuerySet:
        return self.filter(status__in=CrawlJob.LIVE)


class CrawlJob(Record):
    """One run over some URLs; its counters are its progress."""

    class Kind(models.TextChoices):
        MONITOR = "monitor"
        BASELINE = "baseline"
        DISCOVERY = "discovery"
        DEEP = "deep"
        URLS = "urls"
        CAPTURE = "capture"
        REPARSE = "reparse"
        REINDEX = "reindex"

    class Trigger(models.TextChoices):
        SCHEDULED = "scheduled"
        MANUAL = "manual"
        DISCOVERY = "discovery"
        RETRY = "retry"
        API = "api"

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        SUCCESS = "success"
        PARTIAL_SUCCESS = "partial_success"
        FAILED = "failed"
        PAUSED = "paused"
        CANCELLED = "cancelled"

    LIVE = (Status.PENDING, Status.RUNNING, Status.PAUSED)

    client = models.ForeignKey(
        Client, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    website_id = models.UUIDField(null=True, blank=True)
    kind = models.CharField(max_length=12, choices=Kind)
    triggered_by = models.CharField(max_length=12, choices=Trigger)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    # The scheduled moment this run stands for: two beats make one run.
    slot_at = models.DateTimeField(null=True, blank=True)
    total = models.PositiveIntegerField(default=0)
    processed = models.PositiveIntegerField(default=0)
    changes = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    retries = models.PositiveIntegerField(default=0)
    error_summary = models.TextField(blank=True)
    priority = models.PositiveSmallIntegerField(default=5)
    # How its pages are asked for; without one, in the usual way.
    profile = models.ForeignKey(
        "crawling.CrawlProfile", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    parameters = models.JSONField(default=dict, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    objects = CrawlJobQuerySet.as_manager()

    class Meta:
        verbose_name = "job"
        verbose_name_plural = "jobs"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(priority__gte=1, priority__lte=10),
                name="crawl_job_priority_1_to_10",
            ),
            models.UniqueConstraint(
                fields=["website_id", "kind", "slot_at"],
                condition=Q(slot_at__isnull=False),
                name="crawl_job_one_per_slot",
            ),
        ]
        indexes = [
            models.Index(fields=["website_id", "-created_at"], name="crawl_job_website"),
            models.Index(fields=["-created_at", "-id"], name="crawl_job_newest"),
            models.Index(
                fields=["status"],
                condition=Q(status__in=["pending", "running", "paused"]),
                name="crawl_job_live",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.created_at:%Y-%m-%d %H:%M}"

    @property
    def progress(self) -> int:
        """Percent; a job without pages is done."""
        return 100 * self.processed // self.total if self.total else 100
