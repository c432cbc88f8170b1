from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Upper

from accounts.models import Client
from common.ids import uuid7
from common.models import Record
from monitoring.models.websites import Website


class StockStatus(models.TextChoices):
    IN_STOCK = "in_stock"
    OUT_OF_STOCK = "out_of_stock"
    LIMITED_AVAILABILITY = "limited_availability"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    DISCONTINUED = "discontinued"
    UNKNOWN = "unknown"


# What full text search reads; "simple" folds case in every language and guesses no stems.
TEXT_FIELDS = ("name", "brand", "description")


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
    # Identity of the address the page itself calls its own; empty where it names none.
    canonical_hash = models.CharField(max_length=64, blank=True, editable=False)
    duplicate_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="twins"
    )
    duplicate_reason = models.CharField(max_length=255, blank=True)
    # When discovery last saw it, and since when it does not any more.
    discovered_at = models.DateTimeField(null=True, blank=True, editable=False)
    vanished_at = models.DateTimeField(null=True, blank=True, editable=False)
    extraction_method = models.CharField(max_length=20, blank=True)
    sku = models.CharField("SKU", max_length=255, blank=True)
    gtin = models.CharField("GTIN", max_length=14, blank=True)
    mpn = models.CharField("MPN", max_length=255, blank=True)
    brand = models.CharField(max_length=255, blank=True)
    category = models.CharField(max_length=500, blank=True)
    name = models.CharField(max_length=500, blank=True)
    description = models.TextField(blank=True)
    image_url = models.CharField("image URL", max_length=2048, blank=True)
    rating = models.DecimalField(max_digits=5, decimal_places=2, null=True, blank=True)
    review_count = models.PositiveIntegerField(null=True, blank=True)
    current_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    list_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    current_currency = models.CharField(max_length=3, blank=True)
    current_stock_status = models.CharField(
        max_length=20, choices=StockStatus, default=StockStatus.UNKNOWN
    )
    stock_quantity = models.PositiveIntegerField(null=True, blank=True)
    unit_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    content_hash = models.CharField(max_length=64, blank=True)
    # Of the describing fields, so that they are written only when they differ.
    facts_hash = models.CharField(max_length=32, blank=True, editable=False)
    # The page the current state was read from, and by which parser.
    page_hash = models.CharField(max_length=64, blank=True, editable=False)
    parser_version = models.CharField(max_length=20, blank=True, editable=False)
    attributes = models.JSONField(default=dict, blank=True)
    # What was said by hand of it: the page does not change that.
    fixed_fields = models.JSONField(default=list, blank=True, editable=False)
    # Which part of the page each field was read from.
    provenance = models.JSONField(default=dict, blank=True, editable=False)
    # What the client was last told: small steps add up against it.
    notified_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    notified_currency = models.CharField(max_length=3, blank=True)
    notified_stock_status = models.CharField(max_length=20, choices=StockStatus, blank=True)
    # A price that is hard to believe: it waits here for a second look.
    held_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, editable=False)
    held_currency = models.CharField(max_length=3, blank=True, editable=False)
    held_reason = models.CharField(max_length=100, blank=True, editable=False)
    lowest_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    highest_price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    # The page was not there at the last look; gone at the next one too, it is delisted.
    missing_at = models.DateTimeField(null=True, blank=True, editable=False)
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
            models.Index(
                fields=["website", "canonical_hash"],
                condition=~Q(canonical_hash=""),
                name="product_canonical",
            ),
            models.Index(fields=["website", "sku"], condition=~Q(sku=""), name="product_sku"),
            models.Index(
                fields=["brand", "mpn"], condition=~Q(brand="") & ~Q(mpn=""), name="product_mpn"
            ),
            models.Index(
                Upper("brand"), F("created_at").desc(), F("id").desc(), name="product_brand"
            ),
            models.Index(
                fields=["website", "current_stock_status", "-created_at", "-id"],
                name="product_stock",
            ),
            GinIndex(SearchVector(*TEXT_FIELDS, config="simple"), name="product_text"),
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
    # Hard to believe and not confirmed: no figure is made of it.
    is_doubted = models.BooleanField(default=False)
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
        TARGET_REACHED = "target_reached"

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
    alert_rule = models.ForeignKey(
        "monitoring.AlertRule", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    variant_key = models.CharField(max_length=255, blank=True, default="")
    # Why it was held back, or who put it aside.
    note = models.CharField(max_length=255, blank=True, default="")
    crawl_job_id = models.UUIDField(null=True, editable=False)
    # The run whose campaign event lists it, instead of an event of its own.
    campaign_id = models.UUIDField(null=True, editable=False)
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
            models.Index(
                fields=["crawl_job_id"], condition=~Q(crawl_job_id=None), name="change_job"
            ),
            models.Index(fields=["product"], condition=Q(status="quarantined"), name="change_held"),
            models.Index(
                fields=["alert_rule", "product", "-occurred_at"],
                condition=~Q(alert_rule=None),
                name="change_alert",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.old} → {self.new}"
