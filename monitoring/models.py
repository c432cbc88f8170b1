from __future__ import annotations

from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django_celery_beat.models import PeriodicTask

from accounts.models import Client
from common.ids import uuid7
from common.models import Record


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
    approved_product_count = models.PositiveIntegerField(default=0, editable=False)
    last_successful_crawl_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_crawl_status = models.CharField(max_length=16, blank=True, editable=False)
    consecutive_failures = models.PositiveSmallIntegerField(default=0, editable=False)
    webhook_enabled = models.BooleanField(default=True)

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


class StockStatus(models.TextChoices):
    IN_STOCK = "in_stock"
    OUT_OF_STOCK = "out_of_stock"
    LIMITED_AVAILABILITY = "limited_availability"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    DISCONTINUED = "discontinued"
    UNKNOWN = "unknown"


class ProductQuerySet(models.QuerySet["Product"]):
    def for_client(self, client: Client) -> ProductQuerySet:
        return self.filter(website__client=client)

    def monitored(self) -> ProductQuerySet:
        return self.filter(approval=Product.Approval.APPROVED, is_active=True)


class Product(Record):
    """A product page of a website: a candidate until approved, then watched."""

    class Approval(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        REJECTED = "rejected"

    website = models.ForeignKey(Website, on_delete=models.CASCADE, related_name="products")
    approval = models.CharField(max_length=10, choices=Approval, default=Approval.PENDING)
    discovery_score = models.FloatField(default=0)
    discovery_reason = models.CharField(max_length=255, blank=True)
    original_url = models.CharField("URL", max_length=2048)
    normalized_url = models.CharField("normalized URL", max_length=2048)
    url_hash = models.CharField(max_length=64)
    extraction_method = models.CharField(max_length=20, blank=True)
    sku = models.CharField("SKU", max_length=255, blank=True)
    gtin = models.CharField("GTIN", max_length=14, blank=True)
    mpn = models.CharField("MPN", max_length=255, blank=True)
    brand = models.CharField(max_length=255, blank=True)
    category = models.CharField(max_length=500, blank=True)
    name = models.CharField(max_length=500, blank=True)
    description = models.TextField(blank=True)
    image_url = models.CharField("image URL", max_length=2048, blank=True)
    current_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    list_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    current_currency = models.CharField(max_length=3, blank=True)
    current_stock_status = models.CharField(
        max_length=20, choices=StockStatus, default=StockStatus.UNKNOWN
    )
    content_hash = models.CharField(max_length=64, blank=True)
    # The page the current state was read from, and by which parser.
    page_hash = models.CharField(max_length=64, blank=True, editable=False)
    parser_version = models.CharField(max_length=20, blank=True, editable=False)
    attributes = models.JSONField(default=dict, blank=True)
    # What the client was last told: small steps add up against it.
    notified_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    notified_currency = models.CharField(max_length=3, blank=True)
    notified_stock_status = models.CharField(max_length=20, choices=StockStatus, blank=True)
    lowest_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    highest_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    delisted_at = models.DateTimeField(null=True, blank=True)
    last_crawled_at = models.DateTimeField(null=True, blank=True)
    last_changed_at = models.DateTimeField(null=True, blank=True)

    objects = ProductQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["website", "url_hash"], name="product_url_unique"),
            models.CheckConstraint(
                condition=Q(current_price=None) | Q(current_price__gte=0),
                name="product_price_not_negative",
            ),
        ]
        indexes = [
            models.Index(fields=["website", "approval", "-created_at"], name="product_review"),
            models.Index(fields=["-created_at", "-id"], name="product_newest"),
            models.Index(fields=["gtin"], condition=~Q(gtin=""), name="product_gtin"),
            models.Index(fields=["page_hash"], condition=~Q(page_hash=""), name="product_page"),
        ]

    def __str__(self) -> str:
        return self.name or self.original_url


class Candidate(Product):
    """The same rows as the console's review queue shows them."""

    class Meta:
        proxy = True
        verbose_name_plural = "review queue"


class ProductHistory(models.Model):
    """One check of one product; monthly partitions on ``crawl_timestamp``, made by SQL.

    The database key is (id, crawl_timestamp): always filter by product and time.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    product_id = models.UUIDField()
    website_id = models.UUIDField()
    variant_key = models.CharField(max_length=255, blank=True, default="")
    crawl_timestamp = models.DateTimeField()
    price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    list_price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, blank=True)
    stock_status = models.CharField(max_length=20, choices=StockStatus)
    price_changed = models.BooleanField(default=False)
    stock_changed = models.BooleanField(default=False)
    price_change_pct = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # Only where it differs from the row before.
    raw_crawl_data = models.JSONField(null=True)
    crawl_job_id = models.UUIDField(null=True)
    crawl_task_id = models.UUIDField(null=True)
    page_hash = models.CharField(max_length=64, blank=True)
    parser_version = models.CharField(max_length=20, blank=True)

    class Meta:
        verbose_name = "check"
        verbose_name_plural = "history"
        db_table = "monitoring_producthistory"
        ordering = ["-crawl_timestamp", "-id"]

    def __str__(self) -> str:
        return f"{self.product_id} {self.crawl_timestamp:%Y-%m-%d %H:%M}"


class ChangeQuerySet(models.QuerySet["Change"]):
    def for_client(self, client: Client) -> ChangeQuerySet:
        return self.filter(product__website__client=client)


class Change(models.Model):
    """A difference worth knowing, with the rule and the baseline that made it one."""

    class Kind(models.TextChoices):
        PRICE_CHANGED = "price_changed"
        STOCK_CHANGED = "stock_changed"
        BACK_IN_STOCK = "back_in_stock"
        NEW_LOW = "new_low"
        NEW_HIGH = "new_high"
        CURRENCY_CHANGED = "currency_changed"
        DELISTED = "delisted"
        RELISTED = "relisted"
        CONTENT_CHANGED = "content_changed"

    class Status(models.TextChoices):
        CONFIRMED = "confirmed"
        QUARANTINED = "quarantined"
        DISMISSED = "dismissed"

    # UUIDv5 of the crawl task and the kind: a repeated page cannot make a second one.
    id = models.UUIDField(primary_key=True, editable=False)
    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="changes")
    kind = models.CharField(max_length=20, choices=Kind)
    old = models.CharField(max_length=64, blank=True)
    new = models.CharField(max_length=64, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    pct = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    rule = models.CharField(max_length=255)
    history_id = models.UUIDField(null=True)
    page_hash = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=12, choices=Status, default=Status.CONFIRMED)
    occurred_at = models.DateTimeField()

    objects = ChangeQuerySet.as_manager()

    class Meta:
        ordering = ["-occurred_at", "-id"]
        indexes = [
            models.Index(fields=["product", "-occurred_at"], name="change_product"),
            models.Index(fields=["-occurred_at", "-id"], name="change_newest"),
            models.Index(fields=["page_hash"], condition=~Q(page_hash=""), name="change_page"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.old} → {self.new}"
