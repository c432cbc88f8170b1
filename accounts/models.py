from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from common.crypto import EncryptedTextField
from common.ids import uuid7
from common.models import Record


class User(AbstractUser):
    """An operator of this installation."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)

    class Meta(AbstractUser.Meta):
        verbose_name = "operator"
        verbose_name_plural = "operators"
        # A right on no table.
        permissions = [("view_system", "Can see how the system is doing")]


class FailedLogin(models.Model):
    """Bad logins of one name from one address; without a name, of all from there."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    username = models.CharField("user name", max_length=150, blank=True)
    address = models.CharField(max_length=64)
    failures = models.PositiveIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        verbose_name = "locked login"
        ordering = ["-last_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["username", "address"], name="failed_login_name_and_address"
            )
        ]

    def __str__(self) -> str:
        return f"{self.username or 'anybody'} from {self.address}"


class Client(Record):
    """Who registers shops and receives webhooks: the tenant."""

    class Tier(models.TextChoices):
        BASIC = "basic"
        PROFESSIONAL = "professional"
        ENTERPRISE = "enterprise"

    name = models.CharField(max_length=255)
    email = models.EmailField(unique=True)
    subscription_tier = models.CharField(max_length=20, choices=Tier, default=Tier.BASIC)
    is_active = models.BooleanField(default=True)
    max_websites = models.PositiveIntegerField(
        default=20, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    max_products_per_website = models.PositiveIntegerField(
        default=1000, validators=[MinValueValidator(1)]
    )
    timezone = models.CharField(max_length=64, default="UTC")
    webhook_secret_current = EncryptedTextField(editable=False)
    webhook_secret_previous = EncryptedTextField(blank=True, default="", editable=False)
    secret_rotation_expires_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(max_websites__gte=1, max_websites__lte=100),
                name="client_max_websites_1_to_100",
            ),
            models.CheckConstraint(
                condition=Q(max_products_per_website__gte=1),
                name="client_max_products_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def live_webhook_secrets(self) -> list[str]:
        """The secrets that sign right now, newest first."""
        expires = self.secret_rotation_expires_at
        if self.webhook_secret_previous and expires and expires > timezone.now():
            return [self.webhook_secret_current, self.webhook_secret_previous]
        return [self.webhook_secret_current]


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def for_client(self, client: Client) -> ApiKeyQuerySet:
        return self.filter(client=client)

    def live(self) -> ApiKeyQuerySet:
        unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, invalidated_at=None)


class ApiKey(Record):
    """A key of a client, or of an operator when it has no client; only its digest is kept."""

    class Scope(models.TextChoices):
        READ = "read"
        WRITE = "write"
        ADMIN = "admin"

    client = models.ForeignKey(
        Client,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_keys",
        help_text="Empty: an operator key, which sees every client.",
    )
    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=8, editable=False)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    rate_limit_rpm = models.PositiveIntegerField(
        "rate limit (requests/minute)", default=60, validators=[MinValueValidator(1)]
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    invalidated_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(scopes__len__gte=1), name="api_key_has_a_scope"),
            models.CheckConstraint(
                condition=Q(rate_limit_rpm__gte=1), name="api_key_rate_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_live(self) -> bool:
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.invalidated_at is None and not expired


class AuditEntry(models.Model):
    """One write by an operator, a key or the system; never changed afterwards."""

    class Actor(models.TextChoices):
        OPERATOR = "operator"
        KEY = "key"
        SYSTEM = "system"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    actor_kind = models.CharField(max_length=10, choices=Actor)
    actor_id = models.UUIDField(null=True)
    actor_name = models.CharField(max_length=255, blank=True)
    client = models.ForeignKey(Client, on_delete=models.SET_NULL, null=True, related_name="+")
    verb = models.CharField(max_length=64)
    object_type = models.CharField(max_length=64)
    object_id = models.CharField(max_length=64)
    object_name = models.CharField(max_length=255, blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="audit_newest"),
            models.Index(fields=["object_type", "object_id"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.verb} {self.object_type} {self.object_name}"
