from __future__ import annotations

from django.db import models

from accounts.models import Client
from common.models import Record


class ExportQuerySet(models.QuerySet["Export"]):
    def for_client(self, client: Client) -> ExportQuerySet:
        return self.filter(client=client)


class Export(Record):
    """What somebody wants as a file; the file is written while it is downloaded."""

    class Kind(models.TextChoices):
        PRODUCTS = "products"
        HISTORY = "history"
        CHANGES = "changes"

    class Format(models.TextChoices):
        CSV = "csv"
        XLSX = "xlsx"
        NDJSON = "ndjson"

    # Null: an operator's, over all clients.
    client = models.ForeignKey(
        Client, on_delete=models.CASCADE, null=True, blank=True, related_name="exports"
    )
    kind = models.CharField(max_length=10, choices=Kind)
    format = models.CharField(max_length=6, choices=Format)
    filter = models.JSONField(default=dict, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    objects = ExportQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.kind}.{self.format}"
