from __future__ import annotations

from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django_celery_beat.models import PeriodicTask

from accounts.models import Client
from common.models import Record
from crawling.models import CrawlProfile

CURRENCY = r"^[A-Z]{3}$"
LOCALE = r"^[a-zA-Z]{2,3}([-_][a-zA-Z0-9]{2,8}){0,2}$"


class WebsiteQuerySet(models.QuerySet["Website"]):
    def for_client(self, client: Client) -> WebsiteQuerySet:
        return self.filter(client=client)


class Website(Record):
    """A shop a client watches, with its rules and its schedule."""

    class Kind(models.TextChoices):
        SHOP = "shop"
        CONTENT = "content"

    class Status(models.TextChoices):
        PENDING_APPROVAL = "pending_approval"
        ACTIVE = "active"
        PAUSED = "paused"
        FAILED = "failed"

    class Frequency(models.IntegerChoices):
        EVERY_6_HOURS = 360
        EVERY_8_HOURS = 480
        EVERY_12_HOURS = 720
        DAILY = 1440

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="websites")
    name = models.CharField(max_length=255)
    base_url = models.CharField("base URL", max_length=2048)
    # Identity of base_url: a 2,048 character URL does not fit into an index.
    base_url_hash = models.CharField(max_length=64, editable=False)
    seed_urls = ArrayField(
        models.CharField(max_length=2048), verbose_name="seed URLs", default=list
    )
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.SHOP)
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING_APPROVAL)
    crawl_frequency_minutes = models.PositiveIntegerField(
        choices=Frequency, default=Frequency.DAILY
    )
    periodic_task = models.OneToOneField(
        PeriodicTask,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="website",
    )
    price_change_threshold_pct = models.DecimalField(
        max_digits=5,
        decimal_places=2,
        default=Decimal("1.00"),
        validators=[
            MinValueValidator(Decimal("0.01")),
            MaxValueValidator(Decimal(100)),
        ],
    )
    price_change_threshold_abs = models.DecimalField(
        max_digits=14,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal("0.0001"))],
    )
    retention_days = models.PositiveSmallIntegerField(
        default=90, validators=[MinValueValidator(30), MaxValueValidator(365)]
    )
    crawl_profile = models.ForeignKey(
        CrawlProfile,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="How its pages are asked for; without one, in the usual way.",
    )
    # For pages that leave it open: an ISO 4217 code, and a tag such as de-CH.
    currency = models.CharField(max_length=3, blank=True, validators=[RegexValidator(CURRENCY)])
    locale = models.CharField(max_length=16, blank=True, validators=[RegexValidator(LOCALE)])
    approved_product_count = models.PositiveIntegerField(default=0, editable=False)
    last_successful_crawl_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_crawl_status = models.CharField(max_length=16, blank=True, editable=False)
    consecutive_failures = models.PositiveSmallIntegerField(default=0, editable=False)
    webhook_enabled = models.BooleanField(default=True)
    # What the test crawl of a seed page showed; None until there was one.
    test_crawl = models.JSONField(null=True, blank=True, editable=False)
    # Pages one discovery reads at most; None: what the installation allows.
    discovery_max_pages = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    # Which candidates need nobody's approval: {"min_score", "include", "exclude"}.
    auto_approve = models.JSONField(null=True, blank=True)
    # URLs that are neither read nor ever candidates.
    banned_patterns = ArrayField(models.CharField(max_length=255), default=list, blank=True)

    objects = WebsiteQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["client", "base_url_hash"], name="website_once_per_client"
            ),
            models.CheckConstraint(
                condition=Q(
                    price_change_threshold_pct__gte=Decimal("0.01"),
                    price_change_threshold_pct__lte=100,
                ),
                name="website_threshold_pct_range",
            ),
            models.CheckConstraint(
                condition=Q(retention_days__gte=30, retention_days__lte=365),
                name="website_retention_30_to_365",
            ),
        ]

    def __str__(self) -> str:
        return self.name
