from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from accounts.models import Client
from common.models import Record
from monitoring.models.products import Product


class ProductMatchQuerySet(models.QuerySet["ProductMatch"]):
    def for_client(self, client: Client) -> ProductMatchQuerySet:
        return self.filter(left__website__client=client)


class ProductMatch(Record):
    """Two products that look alike: the same one only when somebody says so."""

    class Status(models.TextChoices):
        PROPOSED = "proposed"
        CONFIRMED = "confirmed"
        REJECTED = "rejected"

    left = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="+")
    right = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="+")
    score = models.FloatField()
    reason = models.CharField(max_length=255, blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.PROPOSED)

    objects = ProductMatchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "product matches"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["left", "right"], name="match_once_per_pair"),
            models.CheckConstraint(condition=Q(left__lt=F("right")), name="match_in_order"),
        ]
        indexes = [models.Index(fields=["right"], name="match_right")]

    def __str__(self) -> str:
        return f"{self.left_id} = {self.right_id}?"
