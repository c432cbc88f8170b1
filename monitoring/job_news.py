"""The end of a job as news for the client, where somebody asked for the job: what runs on a
schedule tells of what it found, and of itself only when a website is given up."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from crawling.models import CrawlJob
from notifications.events import EventDraft, publish

ASKED_FOR = (CrawlJob.Trigger.MANUAL, CrawlJob.Trigger.API)
KINDS = {
    CrawlJob.Status.SUCCESS: "job.completed",
    CrawlJob.Status.PARTIAL_SUCCESS: "job.completed",
    CrawlJob.Status.FAILED: "job.failed",
    CrawlJob.Status.CANCELLED: "job.cancelled",
}


def tell(jobs: Sequence[CrawlJob]) -> None:
    """In the transaction that ends the jobs."""
    publish(
        [
            _draft(job, job.client_id)
            for job in jobs
            if job.client_id and job.triggered_by in ASKED_FOR
        ]
    )


def _draft(job: CrawlJob, client_id: uuid.UUID) -> EventDraft:
    assert job.completed_at
    return EventDraft(
        client_id=client_id,
        type=KINDS[CrawlJob.Status(job.status)],
        # A job that is retried ends once more.
        cause=uuid.uuid5(job.pk, job.completed_at.isoformat()),
        occurred_at=job.completed_at,
        website_id=job.website_id,
        object_id=job.pk,
        data={
            "object": {
                "id": str(job.pk),
                "website_id": str(job.website_id) if job.website_id else None,
                "kind": job.kind,
                "status": job.status,
                "total": job.total,
                "processed": job.processed,
                "changes": job.changes,
                "errors": job.errors,
                "error_summary": job.error_summary,
                "url": f"/api/v1/jobs/{job.pk}",
            }
        },
    )
