from __future__ import annotations

from django.db import models
from django.db.models import Q

from accounts.models import Client
from common.ids import uuid7
from crawling.models import CrawlJob
from monitoring.models.websites import Website


class FoundUrlQuerySet(models.QuerySet["FoundUrl"]):
    def for_client(self, client: Client) -> FoundUrlQuerySet:
        return self.filter(website__client=client)

    def of_job(self, job: CrawlJob) -> FoundUrlQuerySet:
        assert job.website_id is not None
        return self.filter(website_id=job.website_id, job_id=job.pk)


class FoundUrl(models.Model):
    """A URL that discovery came across, and why it was read or not."""

    class Source(models.TextChoices):
        SEED = "seed"
        ROBOTS = "robots"
        SITEMAP = "sitemap"
        LINK = "link"
        FEED = "feed"
        GUESS = "guess"

    class State(models.TextChoices):
        WAITING = "waiting"
        ASKED = "asked"
        PRODUCT = "product"
        NO_PRODUCT = "no_product"
        DUPLICATE = "duplicate"
        READ = "read"
        KNOWN = "known"
        LISTED = "listed"
        FAILED = "failed"
        ROBOTS = "robots"
        BANNED = "banned"
        EXCLUDED = "excluded"
        TOO_DEEP = "too_deep"
        OTHER_SITE = "other_site"
        OVER_LIMIT = "over_limit"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    website = models.ForeignKey(Website, on_delete=models.CASCADE, related_name="found_urls")
    url = models.CharField("URL", max_length=2048)
    url_hash = models.CharField(max_length=64)
    # The discovery that saw it last.
    job_id = models.UUIDField()
    purpose = models.CharField(max_length=16)
    source = models.CharField(max_length=8, choices=Source)
    depth = models.PositiveSmallIntegerField(default=0)
    score = models.FloatField(default=0)
    lastmod = models.DateTimeField(null=True)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    reason = models.CharField(max_length=255, blank=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    objects = FoundUrlQuerySet.as_manager()

    class Meta:
        verbose_name = "found URL"
        verbose_name_plural = "found URLs"
        ordering = ["-score", "id"]
        constraints = [
            models.UniqueConstraint(fields=["website", "url_hash"], name="found_url_once"),
        ]
        indexes = [
            models.Index(
                fields=["website", "-score", "depth", "id"],
                condition=Q(state="waiting"),
                name="found_url_next",
            ),
            models.Index(fields=["website", "-last_seen_at", "-id"], name="found_url_newest"),
        ]

    def __str__(self) -> str:
        return self.url


class ParserHealth(models.Model):
    """How much of a host's pages can be read, and since when that is less than usual."""

    host = models.CharField(max_length=260, primary_key=True)
    usual_pct = models.FloatField()
    last_pct = models.FloatField()
    dropped_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "parser health"

    def __str__(self) -> str:
        return f"{self.host} {self.last_pct:.0f} %"
