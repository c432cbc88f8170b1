"""The road inside one process: registration, slices, approval, changes, events."""

from __future__ import annotations

from decimal import Decimal

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.audit import SYSTEM
from accounts.models import Client
from common.partitions import ensure_partitions
from crawling.models import CrawlJob
from crawling.slices import run_slice
from monitoring import approval, registration, runs
from monitoring.models import Change, Product, ProductHistory, Website
from monitoring.registration import Registration
from notifications.catalogue import TYPES
from notifications.models import Event
from tests.shop.server import ScriptedShop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.CRAWL_DEFAULT_DELAY_SECONDS = 0
    settings.CRAWL_DEFAULT_CONCURRENCY = 8
    settings.CRAWL_BATCH_SECONDS = 0.1
    ensure_partitions("monitoring_producthistory", now=timezone.now())


@pytest.fixture
def client_row() -> Client:
    return Client.objects.create(
        name="Acme", email="a@acme.test", webhook_secret_current="whsec_eA=="
    )


def register(client: Client, shop: ScriptedShop) -> Website:
    return registration.register_website(client, Registration(base_url=shop.url), actor=SYSTEM)


def test_a_registered_shop_is_discovered_approved_and_watched(
    client_row: Client, shop: ScriptedShop
) -> None:
    website = register(client_row, shop)
    run_slice(10)
    candidates = Product.objects.filter(website=website, approval="pending")
    assert candidates.count() == len(shop.slugs)
    assert Event.objects.filter(type="website.discovered").count() == 1

    approval.approve(list(candidates.values_list("id", flat=True)), actor=SYSTEM)
    run_slice(10)
    website.refresh_from_db()
    assert website.status == Website.Status.ACTIVE
    assert website.periodic_task
    assert website.periodic_task.enabled
    assert ProductHistory.objects.count() == len(shop.slugs)
    assert not Change.objects.exists()

    shop.set_price("desk-lamp", "29.90")
    runs.start_monitoring(website, triggered_by="manual")
    run_slice(10)
    assert ProductHistory.objects.count() == 2 * len(shop.slugs)
    change = Change.objects.get(kind="price_changed")
    assert Decimal(change.new) == Decimal("29.90")
    assert Event.objects.filter(type="product.price_changed").count() == 1
    for event in Event.objects.all():
        jsonschema.validate(orjson.loads(event.body), TYPES[event.type].schema)
    job = CrawlJob.objects.filter(kind="monitor").get()
    assert (job.status, job.processed, job.changes) == ("success", len(shop.slugs), 2)
