"""Shops that hang, drip, lie and explode, all in one slice beside one that behaves."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from crawling import frontier
from crawling.frontier import Target
from crawling.models import CrawlJob, CrawlTask
from crawling.slices import run_slice
from tests.factories.crawling import ProfileFactory
from tests.shop.server import ScriptedShop

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback", "page_files"),
]
PATIENCE_SECONDS = 2
ENDS = {
    "/slow?seconds=60": ("pending", "timeout"),
    "/drip": ("pending", "timeout"),
    "/reset": ("pending", "network"),
    "/truncated": ("pending", "network"),
    "/redirect-loop": ("failed", "http"),
    "/redirect-chain?hops=6": ("failed", "http"),
    "/redirect-to?url=http://169.254.169.254/latest": ("failed", "blocked"),
    "/redirect-to?url=file:///etc/passwd": ("failed", "validation"),
    "/bomb?mib=100": ("failed", "too_large"),
    "/too-big?mib=20": ("failed", "too_large"),
    "/too-big?mib=20&declared=1": ("failed", "too_large"),
    "/film": ("failed", "validation"),
    "/status/403": ("pending", "blocked"),
    "/status/410": ("failed", "http"),
    "/wrong-charset?bytes=cp1252": ("completed", ""),
}


@pytest.fixture
def job(settings: Settings, shop: ScriptedShop) -> CrawlJob:
    """Each page has a host of its own, so that none spoils another's."""
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}
    profile = ProfileFactory.create(timeout_seconds=PATIENCE_SECONDS)
    job = frontier.open_job(
        kind="urls", triggered_by="manual", client_id=None, profile_id=profile.pk
    )
    assert job is not None
    hostile = [f"http://h{n}.localhost:{shop.port}{path}" for n, path in enumerate(ENDS)]
    good = [f"http://good.localhost:{shop.port}/products/{slug}" for slug in shop.slugs]
    frontier.submit(job, purpose="test", targets=[Target(url=url) for url in (*hostile, *good)])
    return job


def test_each_ends_with_its_category_and_the_others_go_on(job: CrawlJob) -> None:
    run_slice(5 * PATIENCE_SECONDS)
    tasks = CrawlTask.objects.filter(job=job)
    ends = {task.url.partition(".localhost")[2].partition("/")[2]: task for task in tasks}
    assert {path: (ends[path[1:]].status, ends[path[1:]].error_category) for path in ENDS} == ENDS
    good = [task for task in tasks if "//good." in task.url]
    assert {task.status for task in good} == {"completed"}
    slowest = max(task.fetched_at for task in good if task.fetched_at)
    # The hanging ones were still on their way when the good ones were done.
    assert (slowest - min(t.fetched_at for t in tasks if t.fetched_at)).total_seconds() < (
        PATIENCE_SECONDS
    )
    # Its type was refused before its body was waited for.
    assert (ends["film"].http_status, ends["film"].retry_count) == (200, 0)
    assert not tasks.filter(leased_until__isnull=False).exists()
