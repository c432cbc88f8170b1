from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from common.ids import uuid7
from common.models import Record


class Domain(Record):
    """One host: its pace, its robots.txt, its breaker, and who crawls it right now."""

    class Render(models.TextChoices):
        AUTO = "auto"
        STATIC = "static"
        BROWSER = "browser"

    class Rotation(models.TextChoices):
        LRU = "lru"
        ROUND_ROBIN = "round_robin"
        LEAST_USED = "least_used"
        RANDOM = "random"

    class Breaker(models.TextChoices):
        CLOSED = "closed"
        OPEN = "open"
        HALF_OPEN = "half_open"

    # Host with port where it is not the default one; pace and robots hold for that origin.
    host = models.CharField(max_length=260, unique=True)
    base_url = models.CharField("base URL", max_length=2048)
    parser_name = models.CharField(max_length=64, default="generic")
    parser_version = models.CharField(max_length=20, blank=True)
    # Places on its pages that agreed with their structured data: see extraction.learned.
    learned = models.JSONField(default=list, blank=True)
    crawl_delay_seconds = models.FloatField(default=1, validators=[MinValueValidator(0)])
    rate_limit_rps = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.001)])
    max_concurrent_requests = models.PositiveSmallIntegerField(
        default=2, validators=[MinValueValidator(1), MaxValueValidator(64)]
    )
    respect_robots = models.BooleanField(default=True)
    user_agent = models.CharField(max_length=255, blank=True)
    # Grid of stand-alone URLs that recur and name no frequency of their own.
    default_crawl_frequency_seconds = models.PositiveIntegerField(
        default=86_400, validators=[MinValueValidator(60)]
    )
    is_active = models.BooleanField(default=True)
    is_blocked = models.BooleanField(default=False)
    blocked_reason = models.CharField(max_length=255, blank=True)
    render = models.CharField(max_length=10, choices=Render, default=Render.AUTO)

    # Local times between which the shop is left alone; past midnight where start > end.
    maintenance_start = models.TimeField(null=True, blank=True)
    maintenance_end = models.TimeField(null=True, blank=True)
    maintenance_timezone = models.CharField(max_length=64, default="UTC")
    proxy_rotation = models.CharField(max_length=12, choices=Rotation, default=Rotation.LRU)

    robots_url = models.CharField("robots URL", max_length=2048, blank=True)
    robots_body = models.TextField(blank=True)
    robots_fetched_at = models.DateTimeField(null=True, blank=True)
    robots_status = models.IntegerField(null=True, blank=True)
    robots_crawl_delay = models.FloatField(null=True, blank=True)
    # When it is asked for again: a day after an answer, sooner after none.
    robots_due_at = models.DateTimeField(null=True, blank=True)
    # Times in a row it was unreachable: the wait doubles.
    robots_failures = models.PositiveSmallIntegerField(default=0)
    # The same of the host's other scheme, which has a robots.txt of its own (RFC 9309).
    robots_other = models.JSONField(default=dict, blank=True)

    breaker_threshold = models.PositiveSmallIntegerField(default=5)
    breaker_timeout_s = models.PositiveIntegerField(default=300)
    breaker_state = models.CharField(max_length=10, choices=Breaker, default=Breaker.CLOSED)
    breaker_failures = models.PositiveIntegerField(default=0)
    breaker_opened_at = models.DateTimeField(null=True, blank=True)
    # Times in a row the breaker opened without a success between: the wait doubles.
    breaker_openings = models.PositiveSmallIntegerField(default=0)
    # Answers by tens of seconds: {"bucket": [failures, successes]}, the last ten minutes.
    breaker_window = models.JSONField(default=dict, blank=True)
    # What AutoThrottle adds to the gap while the shop is slow.
    throttle_seconds = models.FloatField(default=0, validators=[MinValueValidator(0)])

    # The last wait a 429 or 503 brought; doubles until an answer is good again.
    backoff_seconds = models.FloatField(default=0, validators=[MinValueValidator(0)])

    next_allowed_at = models.DateTimeField(null=True, blank=True)
    last_request_at = models.DateTimeField(null=True, blank=True)
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
        indexes = [
            models.Index(
                models.F("next_allowed_at").asc(nulls_first=True),
                condition=Q(is_active=True, is_blocked=False),
                name="domain_next",
            ),
        ]

    def __str__(self) -> str:
        return self.host


class LedgerEntry(models.Model):
    """One request to a shop, as the politeness rules saw it; written once, never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="ledger")
    task_id = models.UUIDField(null=True)
    proxy_id = models.UUIDField(null=True)
    url = models.CharField(max_length=2048)
    started_at = models.DateTimeField()
    # Seconds since the request before it, and the gap the rule asked for.
    gap_seconds = models.FloatField(null=True)
    wanted_gap_seconds = models.FloatField(default=0)
    rule = models.CharField(max_length=64)
    http_status = models.PositiveSmallIntegerField(null=True)
    bytes = models.PositiveIntegerField(null=True)
    response_ms = models.PositiveIntegerField(null=True)
    not_modified = models.BooleanField(default=False)
    error_category = models.CharField(max_length=12, blank=True)

    class Meta:
        verbose_name = "ledger entry"
        verbose_name_plural = "politeness ledger"
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(fields=["domain", "-started_at"], name="ledger_domain"),
            models.Index(fields=["task_id"], name="ledger_task"),
            models.Index(fields=["started_at"], name="ledger_age"),
            models.Index(
                fields=["proxy_id", "-started_at"],
                condition=Q(proxy_id__isnull=False),
                name="ledger_proxy",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.url} {self.started_at:%Y-%m-%d %H:%M:%S}"
