from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django_celery_beat.models import PeriodicTask

from accounts.models import AuditEntry, Client
from crawling.models import CrawlJob, CrawlTask
from monitoring import websites
from monitoring.models import Change, Product, ProductHistory, Website
from notifications.models import WebhookEndpoint
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db


def test_a_website_goes_with_all_that_is_its_own(
    api: Any, client_row: Client, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websites, "HISTORY_BATCH", 2)
    product = ProductFactory.create(website=website, approved=True)
    HistoryFactory.create_batch(5, product=product)
    ChangeFactory.create(product=product)
    EndpointFactory.create(client=client_row, website_id=website.pk)
    job = JobFactory.create(client=client_row, website_id=website.pk, running=True)
    TaskFactory.create(job=job)
    kept = HistoryFactory.create()

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


def test_only_its_own_client_with_a_writing_key_may(
    client: Browser, reader: Any, stranger: Any, website: Website
) -> None:
    path = f"/api/v1/websites/{website.pk}"
    assert client.delete(path).status_code == 401
    assert reader.delete(path).status_code == 403
    assert stranger.delete(path).status_code == 404
    assert Website.objects.filter(pk=website.pk).exists()
