from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.ids import uuid7
from common.models import Record
from crawling.models.domains import Domain
from crawling.models.jobs import CrawlJob


class CrawlTask(Record):
    """One URL in a job."""

    class Status(models.TextChoices):
        PENDING = "pending"
        QUEUED = "queued"
        CRAWLING = "crawling"
        DOWNLOADED = "downloaded"
        QUEUED_PARSE = "queued_parse"
        PARSING = "parsing"
        COMPLETED = "completed"
        FAILED = "failed"
        PAUSED = "paused"
        CANCELLED = "cancelled"

    # From where a task may come into each state; crawling/states.py is the only mover.
    MOVES: dict[str, tuple[str, ...]] = {
        Status.PENDING: (
            "queued",
            "crawling",
            "downloaded",
            "parsing",
            "failed",
            "paused",
        ),
        Status.QUEUED: ("pending",),
        Status.CRAWLING: ("pending", "queued"),
        Status.DOWNLOADED: ("crawling",),
        Status.QUEUED_PARSE: ("downloaded", "parsing", "paused", "failed", "completed"),
        Status.PARSING: ("crawling", "downloaded", "queued_parse"),
        Status.COMPLETED: ("crawling", "parsing"),
        Status.FAILED: ("pending", "queued", "crawling", "downloaded", "parsing"),
        Status.PAUSED: ("pending", "queued", "crawling", "downloaded", "queued_parse"),
        Status.CANCELLED: (
            "pending",
            "queued",
            "crawling",
            "downloaded",
            "queued_parse",
            "parsing",
            "paused",
        ),
    }
    TERMINAL = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)

    class Category(models.TextChoices):
        NETWORK = "network"
        TIMEOUT = "timeout"
        HTTP = "http"
        BLOCKED = "blocked"
        ROBOTS = "robots"
        PARSE = "parse"
        VALIDATION = "validation"
        TOO_LARGE = "too_large"
        INTERNAL = "internal"

    job = models.ForeignKey(CrawlJob, on_delete=models.CASCADE, related_name="tasks")
    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="tasks")
    client = models.ForeignKey(
        Client, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    website_id = models.UUIDField(null=True, blank=True)
    # What the consumer asked for, e.g. the product this page belongs to.
    object_id = models.UUIDField(null=True, blank=True)
    purpose = models.CharField(max_length=16)
    url = models.CharField("URL", max_length=2048)
    normalized_url = models.CharField("normalized URL", max_length=2048)
    url_hash = models.CharField(max_length=64)
    status = models.CharField(max_length=14, choices=Status, default=Status.PENDING)
    priority = models.PositiveSmallIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(10)],
        help_text="1 is the most urgent, 10 the least.",
    )
    scheduled_at = models.DateTimeField()
    retry_count = models.PositiveSmallIntegerField(default=0)
    max_retries = models.PositiveSmallIntegerField(default=3)
    depth = models.PositiveSmallIntegerField(default=0)
    # Best-first: of two tasks with the same priority the higher score comes first.
    score = models.FloatField(default=0)
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    # Where a pause found it, so that it goes on from there.
    paused_from = models.CharField(max_length=14, blank=True)
    # Claims that never came to an end: a page that kills its worker stops at three.
    claims = models.PositiveSmallIntegerField(default=0)
    error_category = models.CharField(max_length=12, choices=Category, blank=True)
    error_message = models.TextField(blank=True)
    http_status = models.PositiveSmallIntegerField("HTTP status", null=True, blank=True)
    response_time_ms = models.PositiveIntegerField(null=True, blank=True)
    bytes = models.PositiveIntegerField(null=True, blank=True)
    final_url = models.CharField("final URL", max_length=2048, blank=True)
    # When the page was asked for; a later reading of the stored page keeps this time.
    fetched_at = models.DateTimeField(null=True, blank=True)
    # The page had not changed since the last look (304 or the same bytes).
    from_cache = models.BooleanField(default=False)
    proxy = models.ForeignKey(
        "crawling.Proxy", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    stored_page = models.ForeignKey(
        "crawling.StoredPage",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="tasks",
    )
    # Stand-alone URLs that come round again, on a grid.
    is_recurring = models.BooleanField(default=False)
    crawl_frequency_seconds = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(60)]
    )
    next_crawl_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = "task"
        verbose_name_plural = "tasks"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["purpose", "website_id", "client", "url_hash"],
                condition=~Q(status__in=["completed", "failed", "cancelled"]),
                nulls_distinct=False,
                name="crawl_task_one_live_per_url",
            ),
            models.CheckConstraint(
                condition=Q(priority__gte=1, priority__lte=10),
                name="crawl_task_priority_1_to_10",
            ),
        ]
        indexes = [
            models.Index(
                fields=["domain", "priority", "-score", "depth", "scheduled_at"],
                condition=Q(status__in=["pending", "queued"]),
                name="crawl_task_due",
            ),
            models.Index(
                fields=["scheduled_at"],
                condition=Q(status__in=["pending", "queued"]),
                name="crawl_task_due_at",
            ),
            models.Index(
                fields=["priority", "-score", "scheduled_at"],
                condition=Q(status="queued_parse"),
                name="crawl_task_to_parse",
            ),
            models.Index(
                fields=["leased_until"],
                condition=Q(status__in=["crawling", "parsing"]),
                name="crawl_task_leased",
            ),
            models.Index(
                fields=["job"],
                condition=~Q(status__in=["completed", "failed", "cancelled"]),
                name="crawl_task_open_in_job",
            ),
            models.Index(fields=["-created_at", "-id"], name="crawl_task_newest"),
            models.Index(
                fields=["next_crawl_at"],
                condition=Q(is_recurring=True, next_crawl_at__isnull=False),
                name="crawl_task_recurring",
            ),
            models.Index(
                models.F("completed_at").desc(nulls_last=True),
                models.F("id").desc(),
                condition=Q(status="failed"),
                name="crawl_task_dead",
            ),
        ]

    def __str__(self) -> str:
        return self.url


class CrawlError(models.Model):
    """One failed try of one task."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    task = models.ForeignKey(CrawlTask, on_delete=models.CASCADE, related_name="error_log")
    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="error_log")
    category = models.CharField(max_length=12, choices=CrawlTask.Category)
    message = models.TextField()
    trace = models.TextField(blank=True)
    fingerprint = models.CharField(max_length=64)
    occurred_at = models.DateTimeField()

    class Meta:
        verbose_name = "error"
        verbose_name_plural = "errors"
        ordering = ["-occurred_at", "-id"]
        indexes = [
            models.Index(fields=["fingerprint", "-occurred_at"], name="crawl_error_group"),
            models.Index(fields=["domain", "-occurred_at"], name="crawl_error_domain"),
            models.Index(fields=["-occurred_at", "-id"], name="crawl_error_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.category}: {self.message[:80]}"
