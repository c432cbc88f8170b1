from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest

from accounts.audit import SYSTEM
from crawling import jobs
from crawling.models import CrawlJob
from monitoring import websites
from notifications.catalogue import TYPES
from notifications.models import Event
from tests.factories.accounts import ClientFactory
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import WebsiteFactory

pytestmark = pytest.mark.django_db


def ended(**given: object) -> CrawlJob:
    """A job that was asked for and all of whose tasks came to their end."""
    usual: dict[str, object] = {
        "kind": "deep",
        "client_id": ClientFactory.create().pk,
        "triggered_by": "api",
        "status": "running",
        "total": 2,
        "processed": 2,
    }
    job: CrawlJob = JobFactory.create(**{**usual, **given})
    for _ in range(2):
        TaskFactory.create(job=job, status="completed")
    jobs.finish_done([job.pk])
    return job


@pytest.mark.parametrize(
    ("processed", "errors", "kind", "status"),
    [
        (2, 0, "job.completed", "success"),
        (2, 1, "job.completed", "partial_success"),
        (2, 2, "job.failed", "failed"),
        (0, 0, "job.cancelled", "cancelled"),
    ],
)
def test_who_asked_for_a_job_hears_how_it_ended(
    processed: int, errors: int, kind: str, status: str
) -> None:
    job = ended(processed=processed, errors=errors)
    event = Event.objects.get()
    assert (event.type, event.client_id, event.object_id) == (kind, job.client_id, job.pk)
    body = orjson.loads(event.body)
    jsonschema.validate(body, TYPES[kind].schema)
    assert body["data"]["object"]["status"] == status


def test_a_job_that_is_tried_again_is_told_of_again() -> None:
    job = ended(errors=2)
    jobs.reopen([job.pk])
    jobs.finish_done([job.pk])
    assert [e.type for e in Event.objects.order_by("sequence")] == ["job.failed", "job.failed"]


def test_cancelling_is_told() -> None:
    job = JobFactory.create(
        client_id=ClientFactory.create().pk, triggered_by="manual", status="running"
    )
    jobs.cancel(job)
    event = Event.objects.get()
    assert event.type == "job.cancelled"
    jsonschema.validate(orjson.loads(event.body), TYPES[event.type].schema)


@pytest.mark.parametrize("trigger", ["scheduled", "retry", "discovery"])
def test_what_runs_by_itself_says_nothing_of_its_end(trigger: str) -> None:
    ended(triggered_by=trigger)
    assert not Event.objects.exists()


def test_an_operators_own_job_has_nobody_to_tell() -> None:
    ended(client_id=None)
    assert not Event.objects.exists()


def test_a_website_that_is_deleted_takes_its_jobs_along_in_silence() -> None:
    website = WebsiteFactory.create(active=True)
    JobFactory.create(
        client_id=website.client_id, website_id=website.pk, triggered_by="api", status="running"
    )
    websites.delete_website(website, actor=SYSTEM)
    assert CrawlJob.objects.get().status == "cancelled"
    assert not Event.objects.exists()
