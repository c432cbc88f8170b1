"""Celery doors of monitoring."""

from __future__ import annotations

import uuid

from celery import shared_task
from django.utils import timezone

from common.partitions import ensure_partitions
from monitoring import runs
from monitoring.models import ProductHistory


@shared_task
def crawl_website(website_id: str) -> str | None:
    job = runs.run_scheduled(uuid.UUID(website_id))
    return str(job.pk) if job else None


@shared_task
def make_partitions() -> list[str]:
    return ensure_partitions(ProductHistory._meta.db_table, now=timezone.now())
