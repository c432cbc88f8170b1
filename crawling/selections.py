"""Which tasks an operator means."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import QuerySet

from common.errors import Invalid
from crawling.models import CrawlError, CrawlTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """All that is named must hold; a filter that names nothing means nothing."""

    ids: Sequence[uuid.UUID] | None = None
    status: str | None = None
    domain: str | None = None
    job: uuid.UUID | None = None
    website: uuid.UUID | None = None
    client: uuid.UUID | None = None
    purpose: str | None = None
    category: str | None = None
    fingerprint: str | None = None
    q: str | None = None

    @property
    def named(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def rows(self) -> QuerySet[CrawlTask]:
        if not self.named:
            raise Invalid("Name at least one filter: all tasks at once are never meant.")
        lookups = {LOOKUPS[name]: value for name, value in self.named.items() if name in LOOKUPS}
        rows = CrawlTask.objects.filter(**lookups)
        if self.fingerprint is not None:
            died_of = CrawlError.objects.filter(fingerprint=self.fingerprint)
            rows = rows.filter(id__in=died_of.values("task_id"))
        return rows


LOOKUPS = {
    "ids": "id__in",
    "status": "status",
    "domain": "domain__host",
    "job": "job_id",
    "website": "website_id",
    "client": "client_id",
    "purpose": "purpose",
    "category": "error_category",
    "q": "url__icontains",
}
