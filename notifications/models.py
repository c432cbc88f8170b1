from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.crypto import EncryptedTextField
from common.ids import uuid7
from common.models import Record


class EndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def for_client(self, client: Client) -> EndpointQuerySet:
        return self.filter(client=client)


class WebhookEndpoint(Record):
    """Where a client hears news: all of it, or the kinds and the website it asked for."""

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="webhook_endpoints")
    url = models.CharField("URL", max_length=2048)
    # Dotted patterns: "*", "product.*", "product.price_changed".
    events = ArrayField(models.CharField(max_length=64), default=list)
    website_id = models.UUIDField(null=True, blank=True)
    description = models.CharField(max_length=255, blank=True)
    is_active = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=255, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    timeout_seconds = models.PositiveSmallIntegerField(default=15)
    # Empty: the client's secrets sign.
    secret_current = EncryptedTextField(blank=True, default="", editable=False)
    secret_previous = EncryptedTextField(blank=True, default="", editable=False)
    secret_rotation_expires_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        verbose_name = "webhook"
        verbose_name_plural = "webhooks"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["client", "website_id"],
                condition=Q(website_id__isnull=False),
                name="webhook_endpoint_one_per_website",
            ),
            models.CheckConstraint(
                condition=Q(timeout_seconds__gte=1, timeout_seconds__lte=30),
                name="webhook_endpoint_timeout_1_to_30",
            ),
        ]
        indexes = [models.Index(fields=["client", "is_active"], name="webhook_endpoint_client")]

    def __str__(self) -> str:
        return self.url


class Feed(models.Model):
    """The last event number given out to a client; the row lock keeps the numbers gap-free."""

    client = models.OneToOneField(
        Client, on_delete=models.CASCADE, primary_key=True, related_name="feed"
    )
    last_sequence = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.client_id} {self.last_sequence}"


class EventQuerySet(models.QuerySet["Event"]):
    def for_client(self, client: Client) -> EventQuerySet:
        return self.filter(client=client)


class Event(models.Model):
    """Something a client is told; the body is kept byte for byte as it is sent."""

    id = models.UUIDField(primary_key=True, editable=False)
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="events")
    type = models.CharField(max_length=64)
    sequence = models.BigIntegerField()
    body = models.TextField()
    website_id = models.UUIDField(null=True, blank=True)
    object_id = models.UUIDField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["client", "sequence"], name="event_sequence_unique")
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="event_newest"),
            models.Index(fields=["object_id", "-created_at"], name="event_object"),
        ]

    def __str__(self) -> str:
        return f"{self.type} #{self.sequence}"

    @property
    def public_id(self) -> str:
        return f"evt_{self.id.hex}"


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def for_client(self, client: Client) -> DeliveryQuerySet:
        return self.filter(event__client=client)


class Delivery(Record):
    """One event on its way to one endpoint."""

    class Status(models.TextChoices):
        PENDING = "pending"
        SUCCESS = "success"
        FAILED = "failed"
        RETRYING = "retrying"
        EXHAUSTED = "exhausted"

    OPEN = (Status.PENDING, Status.RETRYING)

    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    attempt_number = models.PositiveSmallIntegerField(default=0)
    next_retry_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    last_http_status = models.PositiveSmallIntegerField("HTTP status", null=True, blank=True)
    last_error = models.CharField(max_length=255, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["event", "endpoint"], name="delivery_once_per_endpoint")
        ]
        indexes = [
            models.Index(
                fields=["next_retry_at"],
                condition=Q(status__in=["pending", "retrying"]),
                name="delivery_due",
            ),
            models.Index(fields=["endpoint", "-created_at"], name="delivery_endpoint"),
            models.Index(fields=["-created_at", "-id"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} → {self.endpoint_id}"


class DeliveryAttempt(models.Model):
    """What was sent and what came back, once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    attempted_at = models.DateTimeField()
    signature_header = models.TextField()
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    response_body = models.TextField(blank=True)
    error = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ["delivery", "number"]
        indexes = [models.Index(fields=["delivery", "number"], name="attempt_of_delivery")]

    def __str__(self) -> str:
        return f"try {self.number}: {self.status_code or self.error}"
