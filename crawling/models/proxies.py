from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from common.crypto import EncryptedTextField
from common.models import Record
from crawling.models.domains import Domain


class Health(models.Model):
    """How something has served: totals for people, a row of failures for decisions."""

    success_count = models.BigIntegerField(default=0, editable=False)
    failure_count = models.BigIntegerField(default=0, editable=False)
    consecutive_failures = models.PositiveIntegerField(default=0, editable=False)
    response_ms_ewma = models.FloatField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_success_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_failure_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Until then it is not chosen: fifteen minutes, doubling.
    resting_until = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def success_pct(self) -> float | None:
        answers = self.success_count + self.failure_count
        return round(100 * self.success_count / answers, 1) if answers else None


class Proxy(Record, Health):
    class Protocol(models.TextChoices):
        HTTP = "http"
        HTTPS = "https"
        SOCKS5 = "socks5"

    protocol = models.CharField(max_length=8, choices=Protocol, default=Protocol.HTTP)
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField(validators=[MinValueValidator(1), MaxValueValidator(65535)])
    username = models.CharField(max_length=255, blank=True)
    password = EncryptedTextField(blank=True, default="")
    pool = models.CharField(max_length=64, blank=True)
    country_code = models.CharField(max_length=2, blank=True)
    city = models.CharField(max_length=100, blank=True)
    provider = models.CharField(max_length=100, blank=True)
    monthly_cost = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    max_requests_per_hour = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    # The clock hour that is counted, and the requests in it.
    hour_at = models.DateTimeField(null=True, editable=False)
    hour_count = models.PositiveIntegerField(default=0, editable=False)
    is_active = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=255, blank=True)

    class Meta:
        verbose_name_plural = "proxies"
        ordering = ["host", "port", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "host", "port", "username"], name="proxy_unique"
            ),
            models.CheckConstraint(
                condition=Q(port__gte=1, port__lte=65535), name="proxy_port_range"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.protocol}://{self.host}:{self.port}"


class DomainProxy(Record, Health):
    """A proxy a domain may be crawled through, and how well that goes."""

    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="domain_proxies")
    proxy = models.ForeignKey(Proxy, on_delete=models.CASCADE, related_name="domain_proxies")
    priority = models.PositiveSmallIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(10)],
        help_text="1 is preferred, 10 the last resort.",
    )
    is_active = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "domain proxies"
        ordering = ["domain", "priority", "id"]
        constraints = [
            models.UniqueConstraint(fields=["domain", "proxy"], name="domain_proxy_unique"),
            models.CheckConstraint(
                condition=Q(priority__gte=1, priority__lte=10), name="domain_proxy_priority_1_to_10"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.domain} via {self.proxy}"
