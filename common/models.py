from __future__ import annotations

from django.db import models

from common.ids import uuid7


class Record(models.Model):
    """What every row has: a time-ordered id and when it was made and last touched."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class IdempotentRequest(models.Model):
    """The answer to a POST that carried an Idempotency-Key, kept for 24 hours."""

    owner = models.UUIDField()
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    # Null while the first request is still being worked on.
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.TextField(default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="idempotent_request_unique")
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotent_request_age")]

    def __str__(self) -> str:
        return f"{self.owner} {self.key}"
