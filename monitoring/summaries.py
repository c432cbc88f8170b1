"""What a day brought a client: the figures of its daily summary."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from django.db.models import Count

from monitoring.changes import plain
from monitoring.models import Change, Product, ProductHistory, Website

DROPS = 5


def figures(client_id: uuid.UUID, start: dt.datetime, until: dt.datetime) -> dict[str, Any]:
    websites = list(Website.objects.filter(client_id=client_id).values_list("pk", "status"))
    products = Product.objects.filter(website__client_id=client_id)
    checks = ProductHistory.objects.filter(
        website_id__in=[pk for pk, _ in websites],
        crawl_timestamp__gte=start,
        crawl_timestamp__lt=until,
    )
    changes = Change.objects.filter(
        product__website__client_id=client_id,
        status=Change.Status.CONFIRMED,
        occurred_at__gte=start,
        occurred_at__lt=until,
    )
    return {
        "websites_active": sum(status == Website.Status.ACTIVE for _, status in websites),
        "websites_failed": sum(status == Website.Status.FAILED for _, status in websites),
        "products_watched": products.filter(approval=Product.Approval.APPROVED).count(),
        "products_waiting": products.filter(approval=Product.Approval.PENDING).count(),
        "checks": checks.count(),
        "changes": dict(changes.order_by("kind").values_list("kind").annotate(count=Count("pk"))),
        "largest_drops": [_drop(change) for change in _largest_drops(changes)],
    }


def _largest_drops(changes: Any) -> Any:
    drops = changes.filter(kind=Change.Kind.PRICE_CHANGED, pct__lt=0)
    return drops.select_related("product").order_by("pct", "pk")[:DROPS]


def _drop(change: Change) -> dict[str, Any]:
    return {
        "product_id": str(change.product_id),
        "name": change.product.name,
        "url": change.product.original_url,
        "old": change.old,
        "new": change.new,
        "currency": change.currency,
        "pct": None if change.pct is None else plain(change.pct),
    }
