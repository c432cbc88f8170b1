"""What belongs to a product: its variants, its pictures, its months."""

from __future__ import annotations

from django.db import models

from accounts.models import Client
from common.models import Record
from monitoring.models.products import Product, StockStatus


class OfProductQuerySet(models.QuerySet[models.Model]):
    def for_client(self, client: Client) -> OfProductQuerySet:
        return self.filter(product__website__client=client)


class Variant(Record):
    """A size or a colour with a price of its own; its series is in the history table."""

    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="variants")
    key = models.CharField(max_length=255)
    options = models.JSONField(default=dict, blank=True)
    sku = models.CharField("SKU", max_length=255, blank=True)
    gtin = models.CharField("GTIN", max_length=14, blank=True)
    price = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    stock_status = models.CharField(max_length=20, choices=StockStatus, default=StockStatus.UNKNOWN)
    last_seen_at = models.DateTimeField()

    objects = OfProductQuerySet.as_manager()

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(fields=["product", "key"], name="variant_once_per_product")
        ]

    def __str__(self) -> str:
        return self.key


class ProductImage(Record):
    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="images")
    url = models.CharField("URL", max_length=2048)
    position = models.PositiveSmallIntegerField()
    alt_text = models.CharField(max_length=500, blank=True)
    content_type = models.CharField(max_length=50, blank=True)
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    size = models.PositiveIntegerField(null=True, blank=True)
    content_hash = models.CharField(max_length=64, blank=True)
    storage_key = models.CharField(max_length=255, blank=True)

    objects = OfProductQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["product", "position"], name="product_image_one_per_place"
            )
        ]

    def __str__(self) -> str:
        return self.url


class ProductStatistics(Record):
    """A month of a product in one row; kept when its history is gone."""

    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="statistics")
    month = models.DateField()
    currency = models.CharField(max_length=3, blank=True)
    min_price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    max_price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    avg_price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # Each price counts as long as it stood.
    time_weighted_avg_price = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    price_changes_count = models.PositiveIntegerField(default=0)
    stock_changes_count = models.PositiveIntegerField(default=0)
    stock_out_days = models.DecimalField(max_digits=5, decimal_places=2, default=0)
    total_snapshots = models.PositiveIntegerField(default=0)

    objects = OfProductQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "product statistics"
        ordering = ["-month"]
        constraints = [
            models.UniqueConstraint(fields=["product", "month"], name="statistics_once_per_month")
        ]

    def __str__(self) -> str:
        return f"{self.product_id} {self.month:%Y-%m}"
