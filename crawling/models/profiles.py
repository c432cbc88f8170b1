from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from accounts.models import Client
from common.models import Record


class CrawlProfileQuerySet(models.QuerySet["CrawlProfile"]):
    def for_client(self, client: Client) -> CrawlProfileQuerySet:
        return self.filter(client=client)


class CrawlProfile(Record):
    """A named set of crawl options; without a client it is the operator's."""

    client = models.ForeignKey(
        Client, on_delete=models.CASCADE, null=True, blank=True, related_name="crawl_profiles"
    )
    name = models.CharField(max_length=100)
    max_depth = models.PositiveSmallIntegerField(default=2, validators=[MaxValueValidator(10)])
    rate_limit_rps = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.001)])
    respect_robots = models.BooleanField(default=True)
    headers = models.JSONField(default=dict, blank=True)
    timeout_seconds = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(30)]
    )
    max_page_bytes = models.PositiveIntegerField(
        default=5 * 1024 * 1024, validators=[MaxValueValidator(5 * 1024 * 1024)]
    )
    max_redirects = models.PositiveSmallIntegerField(default=5, validators=[MaxValueValidator(5)])
    extraction = models.JSONField(default=dict, blank=True)
    chunking = models.JSONField(default=dict, blank=True)

    objects = CrawlProfileQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["client", "name"], nulls_distinct=False, name="crawl_profile_name_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name
