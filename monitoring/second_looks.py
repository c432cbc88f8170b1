"""What is hard to believe is looked at again soon, by a task of its own."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

from crawling import frontier, jobs
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.models import CrawlJob

if TYPE_CHECKING:
    from monitoring.snapshots import Known

PURPOSE = "confirm"


def ask(doubtful: Iterable[tuple[Known, Page]], clients: Mapping[uuid.UUID, uuid.UUID]) -> None:
    """In the transaction of the first look. What the second one does not settle waits for
    the next run: a page that never says the same twice must not be asked for ever."""
    targets: dict[uuid.UUID, list[Target]] = defaultdict(list)
    for known, page in doubtful:
        if page.claim.purpose != PURPOSE:
            targets[known.website_id].append(Target(url=known.url, object_id=known.id))
    for website_id in sorted(targets):
        _submit(website_id, clients[website_id], targets[website_id])


def _submit(website_id: uuid.UUID, client_id: uuid.UUID, targets: list[Target]) -> None:
    job = frontier.open_job(
        kind=CrawlJob.Kind.URLS,
        triggered_by=CrawlJob.Trigger.RETRY,
        client_id=client_id,
        website_id=website_id,
        priority=2,
        parameters={"purpose": PURPOSE},
    )
    assert job is not None
    due_at = timezone.now() + dt.timedelta(seconds=settings.CONFIRM_SECONDS)
    frontier.submit(job, purpose=PURPOSE, targets=targets, not_before=due_at)
    if job.total == 0:
        jobs.close_empty(job)
