# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyFunction,
    SelfAttribute,
    Sequence,
    SubFactory,
    Trait,
)
from factory.django import DjangoModelFactory

from common.ids import uuid7
from common.urls import normalize_url, url_hash
from monitoring import schedules
from monitoring.models import Change, Product, ProductHistory, Website
from tests.factories.accounts import ClientFactory


class WebsiteFactory(DjangoModelFactory[Website]):
    class Meta:
        model = Website

    class Params:
        active = Trait(status="active")
        paused = Trait(status="paused")
        failed = Trait(status="failed", consecutive_failures=3)

    client = SubFactory(ClientFactory)
    name = Sequence(lambda n: f"Shop {n}")
    base_url = Sequence(lambda n: f"https://shop{n}.example/")
    base_url_hash = LazyAttribute(lambda site: url_hash(normalize_url(site.base_url)))
    seed_urls = LazyAttribute(lambda site: [site.base_url])

    @classmethod
    def _after_postgeneration(
        cls, instance: Website, create: bool, results: dict[str, Any] | None = None
    ) -> None:
        """The beat entry every registered website has."""
        task = schedules.create_schedule(instance)
        task.enabled = instance.status == Website.Status.ACTIVE
        task.save()
        instance.periodic_task = task
        Website.objects.filter(pk=instance.pk).update(periodic_task=task)


class ProductFactory(DjangoModelFactory[Product]):
    class Meta:
        model = Product

    class Params:
        pending = Trait(approval="pending")
        approved = Trait(approval="approved")
        rejected = Trait(approval="rejected")

    website = SubFactory(WebsiteFactory)
    name = Sequence(lambda n: f"Desk lamp {n}")
    original_url = Sequence(lambda n: f"https://shop.example/p/{n}")
    normalized_url = LazyAttribute(lambda product: normalize_url(product.original_url))
    url_hash = LazyAttribute(lambda product: url_hash(product.normalized_url))
    discovery_score = 0.9
    discovery_reason = "JSON-LD Product with offer"
    extraction_method = "jsonld"
    current_price = Decimal("19.90")
    current_currency = "EUR"
    current_stock_status = "in_stock"


class HistoryFactory(DjangoModelFactory[ProductHistory]):
    class Meta:
        model = ProductHistory
        exclude = ["product"]

    product = SubFactory(ProductFactory)
    product_id = SelfAttribute("product.pk")
    website_id = SelfAttribute("product.website_id")
    crawl_timestamp = LazyFunction(timezone.now)
    price = Decimal("19.90")
    currency = "EUR"
    stock_status = "in_stock"


class ChangeFactory(DjangoModelFactory[Change]):
    class Meta:
        model = Change

    id = LazyFunction(uuid7)
    product = SubFactory(ProductFactory, approved=True)
    kind = "price_changed"
    old = "24.90"
    new = "19.90"
    currency = "EUR"
    pct = Decimal("-20.0803")
    rule = "price moved by 1.00 % or more"
    occurred_at = LazyFunction(timezone.now)
