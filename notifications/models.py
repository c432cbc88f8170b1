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
    throttle_per_second = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="At most so many deliveries a second; empty: no limit."
    )
    # First tries that failed since the last success; many of them make it rest.
    failures_in_row = models.PositiveIntegerField(default=0, editable=False)
    resting_until = models.DateTimeField(null=True, blank=True, editable=False)
    # A JSON object of headers that every request carries; see notifications/headers.py.
    headers = EncryptedTextField(blank=True, default="", editable=False)
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
            models.CheckConstraint(
                condition=Q(throttle_per_second=None)
                | Q(throttle_per_second__gte=1, throttle_per_second__lte=1000),
                name="webhook_endpoint_throttle_1_to_1000",
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
    # As the event has them, so that a claim finds the order of an object in one index.
    object_id = models.UUIDField(null=True, blank=True, editable=False)
    sequence = models.BigIntegerField(db_default=0, editable=False)
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
                fields=["endpoint", "next_retry_at"],
                condition=Q(status__in=["pending", "retrying"]),
                name="delivery_due",
            ),
            models.Index(
                fields=["endpoint", "object_id", "sequence"],
                condition=Q(status__in=["pending", "retrying"]),
                name="delivery_object",
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
    url = models.CharField("URL", max_length=2048, blank=True)
    signature_header = models.TextField()
    # What stood in ``webhook-signature``.
    standard_signature = models.TextField(blank=True)
    # Names only: the values may be secrets of the receiver.
    own_headers = ArrayField(models.CharField(max_length=100), default=list)
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    response_headers = models.JSONField(default=dict)
    response_body = models.TextField(blank=True)
    error = models.CharField(max_length=255, blank=True)

    class Meta:
        # Not by number: what is recovered counts its tries from one again.
        ordering = ["delivery", "attempted_at"]
        indexes = [models.Index(fields=["delivery", "number"], name="attempt_of_delivery")]

    def __str__(self) -> str:
        return f"try {self.number}: {self.status_code or self.error}"


class ChannelQuerySet(models.QuerySet["Channel"]):
    def for_client(self, client: Client) -> ChannelQuerySet:
        return self.filter(client=client)


class Channel(Record):
    """Where people of a client read news: mail or a messenger, at once or gathered."""

    class Digest(models.TextChoices):
        IMMEDIATE = "immediate"
        HOURLY = "hourly"
        DAILY = "daily"

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="channels")
    name = models.CharField(max_length=255)
    # An Apprise URL: it holds passwords and tokens.
    url = EncryptedTextField("URL", editable=False)
    events = ArrayField(models.CharField(max_length=64), default=list)
    digest = models.CharField(max_length=10, choices=Digest, default=Digest.IMMEDIATE)
    # In the client's time zone; a range over midnight is one whose end comes first.
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_until = models.TimeField(null=True, blank=True)
    title_template = models.CharField(max_length=255, blank=True)
    body_template = models.TextField(max_length=4000, blank=True)
    is_active = models.BooleanField(default=True)
    last_sent_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_error = models.CharField(max_length=255, blank=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Counts the leases: what comes of an older one is written nowhere.
    fence = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(quiet_from=None, quiet_until=None)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="channel_quiet_from_and_until",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Notice(Record):
    """One event on its way to one channel."""

    class Status(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        FAILED = "failed"

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="notices")
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="notices")
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    due_at = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=255, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["event", "channel"], name="notice_once_per_channel")
        ]
        indexes = [
            models.Index(
                fields=["channel", "due_at"], condition=Q(status="pending"), name="notice_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_id} → {self.channel_id}"
