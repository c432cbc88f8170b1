from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.models import Record
from monitoring.models.products import Product, StockStatus
from monitoring.models.websites import Website

LONGEST_REARM_MINUTES = 60 * 24 * 366


class AlertRuleQuerySet(models.QuerySet["AlertRule"]):
    def for_client(self, client: Client) -> AlertRuleQuerySet:
        return self.filter(website__client=client)


class AlertRule(Record):
    """When a client wants to hear: of a whole website, or of one of its products."""

    class Kind(models.TextChoices):
        PERCENT = "percent"
        ABSOLUTE = "absolute"
        ANY = "any"
        TARGET_BELOW = "target_below"
        TARGET_ABOVE = "target_above"
        NEW_LOW = "new_low"
        NEW_HIGH = "new_high"
        STOCK = "stock"

    class Direction(models.TextChoices):
        BOTH = "both"
        UP = "up"
        DOWN = "down"

    # Those that say how far a price must move; the others add to them.
    STEPS = (Kind.PERCENT, Kind.ABSOLUTE, Kind.ANY)
    WITH_VALUE = (Kind.PERCENT, Kind.ABSOLUTE, Kind.TARGET_BELOW, Kind.TARGET_ABOVE)

    website = models.ForeignKey(Website, on_delete=models.CASCADE, related_name="alert_rules")
    product = models.ForeignKey(
        Product, on_delete=models.CASCADE, null=True, blank=True, related_name="alert_rules"
    )
    name = models.CharField(max_length=100, blank=True)
    kind = models.CharField(max_length=12, choices=Kind)
    value = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    direction = models.CharField(max_length=4, choices=Direction, default=Direction.BOTH)
    stock_from = ArrayField(
        models.CharField(max_length=20, choices=StockStatus), default=list, blank=True
    )
    stock_to = ArrayField(
        models.CharField(max_length=20, choices=StockStatus), default=list, blank=True
    )
    rearm_minutes = models.PositiveIntegerField(
        default=0, validators=[MaxValueValidator(LONGEST_REARM_MINUTES)]
    )
    confirm = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects = AlertRuleQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["any", "new_low", "new_high", "stock"], value=None)
                | Q(kind__in=["percent", "absolute", "target_below", "target_above"], value__gt=0),
                name="alert_value_where_needed",
            ),
        ]
        indexes = [models.Index(fields=["website", "product"], name="alert_website")]

    def __str__(self) -> str:
        return self.name or " ".join(filter(None, [self.kind, str(self.value or "")]))
