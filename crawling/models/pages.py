from __future__ import annotations

from django.db import models

from common.ids import uuid7


class StoredPage(models.Model):
    """A page as it was fetched, kept once however often it was seen."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    content_hash = models.CharField(max_length=64, unique=True)
    storage_key = models.CharField(max_length=255)
    size = models.PositiveIntegerField()
    compressed_size = models.PositiveIntegerField()
    content_type = models.CharField(max_length=255, blank=True)
    charset = models.CharField(max_length=40, blank=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_seen_at", "-id"]
        indexes = [models.Index(fields=["last_seen_at"], name="stored_page_age")]

    def __str__(self) -> str:
        return self.content_hash


class PageValidator(models.Model):
    """What a URL said of its version, for conditional requests."""

    url_hash = models.CharField(primary_key=True, max_length=64)
    etag = models.CharField(max_length=512, blank=True)
    last_modified = models.CharField(max_length=64, blank=True)
    content_hash = models.CharField(max_length=64)
    # Which address answered: "not modified" of another one says nothing of this page.
    final_url_hash = models.CharField(max_length=64, blank=True, default="")
    updated_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["updated_at"], name="page_validator_age")]

    def __str__(self) -> str:
        return self.url_hash
