"""Celery doors of monitoring."""

from __future__ import annotations

import uuid

from celery import shared_task

from monitoring import health, retention, runs


@shared_task
def crawl_website(website_id: str) -> str | None:
    job = runs.run_scheduled(uuid.UUID(website_id))
    return str(job.pk) if job else None


@shared_task
def probe_failed() -> int:
    return health.probe_failed()


@shared_task
def apply_retention() -> int:
    return sum(step.rows for step in retention.apply())
