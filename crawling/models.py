from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.ids import uuid7
from common.models import Record


class Domain(Record):
    """One host: its pace, its robots.txt, its breaker, and who crawls it right now."""

    class Render(models.TextChoices):
        AUTO = "auto"
        STATIC = "static"
        BROWSER = "browser"

    class Breaker(models.TextChoices):
        CLOSED = "closed"
        OPEN = "open"
        HALF_OPEN = "half_open"

    # Host with port where it is not the default one; pace and robots hold for that origin.
    host = models.CharField(max_length=260, unique=True)
    base_url = models.CharField("base URL", max_length=2048)
    parser_name = models.CharField(max_length=64, default="generic")
    parser_version = models.CharField(max_length=20, blank=True)
    crawl_delay_seconds = models.FloatField(default=1, validators=[MinValueValidator(0)])
    rate_limit_rps = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.001)])
    max_concurrent_requests = models.PositiveSmallIntegerField(
        default=2, validators=[MinValueValidator(1), MaxValueValidator(64)]
    )
    respect_robots = models.BooleanField(default=True)
    user_agent = models.CharField(max_length=255, blank=True)
    is_active = models.BooleanField(default=True)
    is_blocked = models.BooleanField(default=False)
    blocked_reason = models.CharField(max_length=255, blank=True)
    render = models.CharField(max_length=10, choices=Render, default=Render.AUTO)

    robots_url = models.CharField("robots URL", max_length=2048, blank=True)
    robots_body = models.TextField(blank=True)
    robots_fetched_at = models.DateTimeField(null=True, blank=True)
    robots_status = models.IntegerField(null=True, blank=True)
    robots_crawl_delay = models.FloatField(null=True, blank=True)

    breaker_threshold = models.PositiveSmallIntegerField(default=5)
    breaker_timeout_s = models.PositiveIntegerField(default=300)
    breaker_state = models.CharField(max_length=10, choices=Breaker, default=Breaker.CLOSED)
    breaker_failures = models.PositiveIntegerField(default=0)
    breaker_opened_at = models.DateTimeField(null=True, blank=True)

    next_allowed_at = models.DateTimeField(null=True, blank=True)
    leased_by = models.CharField(max_length=64, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    success_count = models.BigIntegerField(default=0)
    failure_count = models.BigIntegerField(default=0)
    response_ms_ewma = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["host"]
        constraints = [
            models.CheckConstraint(
                condition=Q(crawl_delay_seconds__gte=0),
                name="domain_delay_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(rate_limit_rps=None) | Q(rate_limit_rps__gt=0),
                name="domain_rate_positive",
            ),
            models.CheckConstraint(
                condition=Q(max_concurrent_requests__gte=1, max_concurrent_requests__lte=64),
                name="domain_concurrency_1_to_64",
            ),
        ]

    def __str__(self) -> str:
        return self.host


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
        Status.QUEUED_PARSE: ("downloaded", "paused", "failed"),
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
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    # Claims that never came to an end: a page that kills its worker stops at three.
    claims = models.PositiveSmallIntegerField(default=0)
    error_category = models.CharField(max_length=12, choices=Category, blank=True)
    error_message = models.TextField(blank=True)
    http_status = models.PositiveSmallIntegerField("HTTP status", null=True, blank=True)
    response_time_ms = models.PositiveIntegerField(null=True, blank=True)
    bytes = models.PositiveIntegerField(null=True, blank=True)
    final_url = models.CharField("final URL", max_length=2048, blank=True)
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
                fields=["domain", "priority", "depth", "scheduled_at"],
                condition=Q(status__in=["pending", "queued"]),
                name="crawl_task_due",
            ),
            models.Index(
                fields=["scheduled_at"],
                condition=Q(status__in=["pending", "queued"]),
                name="crawl_task_due_at",
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
        ]

    def __str__(self) -> str:
        return f"{self.category}: {self.message[:80]}"
