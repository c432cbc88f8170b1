from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client as Browser
from django_celery_beat.models import PeriodicTask
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.audit import SYSTEM
from accounts.models import AuditEntry, Client
from crawling.models import CrawlJob, CrawlTask
from monitoring import history, websites
from monitoring.models import Change, Product, ProductHistory, Website
from notifications.models import WebhookEndpoint
from tests.factories.accounts import UserFactory
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db


def test_a_website_goes_with_all_that_is_its_own(
    api: Any,
    client_row: Client,
    website: Website,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    monkeypatch.setattr(history, "BATCH", 2)
    product = ProductFactory.create(website=website, approved=True)
    HistoryFactory.create_batch(5, product=product)
    ChangeFactory.create(product=product)
    EndpointFactory.create(client=client_row, website_id=website.pk)
    job = JobFactory.create(client=client_row, website_id=website.pk, running=True)
    TaskFactory.create(job=job)
    kept = HistoryFactory.create()

    with django_capture_on_commit_callbacks(execute=True):
        assert api.delete(f"/api/v1/websites/{website.pk}").status_code == 204
    assert not Website.objects.filter(pk=website.pk).exists()
    assert not Product.objects.filter(pk=product.pk).exists()
    assert not Change.objects.exists()
    assert not WebhookEndpoint.objects.exists()
    assert not PeriodicTask.objects.filter(name__contains=str(website.pk)).exists()
    assert ProductHistory.objects.get().pk == kept.pk
    assert CrawlJob.objects.get(pk=job.pk).status == "cancelled"
    assert CrawlTask.objects.get().status == "cancelled"
    assert AuditEntry.objects.filter(verb="delete", object_id=str(website.pk)).exists()
    assert api.delete(f"/api/v1/websites/{website.pk}").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_job_that_ends_meanwhile_does_not_keep_its_website(website: Website) -> None:
    job = JobFactory.create(client=website.client, website_id=website.pk, running=True)
    jobs = CrawlJob.objects.filter(pk=job.pk)
    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            jobs.select_for_update().get()
            deleting = pool.submit(_delete, website)
            _await_whom_we_block()
            jobs.update(status="success")
        deleting.result(timeout=30)
    assert not Website.objects.exists()
    assert jobs.get().status == "success"


def _delete(website: Website) -> None:
    try:
        websites.delete_website(website, actor=SYSTEM)
    finally:
        connection.close()


def _await_whom_we_block() -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_locks"
                " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone():
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.django_db(transaction=True)
def test_history_goes_after_the_console_has_committed(
    website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []
    monkeypatch.setattr(
        history, "delete_history", lambda _id: inside.append(connection.in_atomic_block)
    )
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    browser.post(f"/admin/monitoring/website/{website.pk}/delete/", {"post": "yes"})
    assert not Website.objects.exists()
    assert inside == [False]


def test_only_its_own_client_with_a_writing_key_may(
    client: Browser, reader: Any, stranger: Any, website: Website
) -> None:
    path = f"/api/v1/websites/{website.pk}"
    assert client.delete(path).status_code == 401
    assert reader.delete(path).status_code == 403
    assert stranger.delete(path).status_code == 404
    assert Website.objects.filter(pk=website.pk).exists()
