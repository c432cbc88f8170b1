"""The first page of the console: how things stand, by a handful of cheap counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from crawling.models import CrawlJob
from monitoring.models import Change, Product, Website
from notifications.models import Delivery

# Nobody reads larger numbers here, and counting them all takes long.
MOST = 1000
DAY = dt.timedelta(days=1)
CURL = """curl -X POST {url}/api/v1/websites \\
  -H "X-API-Key: obsrv_live_…" \\
  -H "Content-Type: application/json" \\
  -d '{{"base_url": "https://shop.example.com/"}}'"""


@dataclass(frozen=True)
class Card:
    title: str
    permission: str
    screen: str
    query: str
    count: Callable[[], int]
    # A number above zero that somebody should look at.
    alarming: bool = False


def add_overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold: ``DASHBOARD_CALLBACK``."""
    context["title"] = "Overview"
    context["cards"] = [_shown(card) for card in CARDS if request.user.has_perm(card.permission)]
    if request.user.has_perm("monitoring.view_website") and not Website.objects.exists():
        context["curl"] = CURL.format(url=settings.PUBLIC_URL)
        context["may_register"] = request.user.has_perm("monitoring.add_website")
    return context


def _shown(card: Card) -> dict[str, Any]:
    count = card.count()
    return {
        "title": card.title,
        "value": f"{MOST}+" if count > MOST else str(count),
        "link": f"{reverse(f'admin:{card.screen}_changelist')}{card.query}",
        "alarming": card.alarming and count > 0,
    }


def _up_to_most(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: MOST + 1].count()


def _active_websites() -> int:
    return Website.objects.filter(status=Website.Status.ACTIVE).count()


def _waiting() -> int:
    # By website, since that is how the index has them.
    websites = Website.objects.values("pk")
    pending = Product.objects.filter(approval=Product.Approval.PENDING, website__in=websites)
    return _up_to_most(pending)


def _changes() -> int:
    return _up_to_most(Change.objects.filter(occurred_at__gte=timezone.now() - DAY))


def _failed_pages() -> int:
    jobs = CrawlJob.objects.filter(created_at__gte=timezone.now() - DAY)
    return jobs.aggregate(total=Sum("errors"))["total"] or 0


def _open_deliveries() -> int:
    return _up_to_most(Delivery.objects.filter(status__in=Delivery.OPEN))


def _failed_deliveries() -> int:
    recent = Delivery.objects.filter(created_at__gte=timezone.now() - DAY)
    return _up_to_most(
        recent.filter(status__in=[Delivery.Status.FAILED, Delivery.Status.EXHAUSTED])
    )


CARDS = (
    Card(
        "Active websites",
        "monitoring.view_website",
        "monitoring_website",
        "?status__exact=active",
        _active_websites,
    ),
    Card("Waiting for review", "monitoring.view_candidate", "monitoring_candidate", "", _waiting),
    Card("Changes, 24 h", "monitoring.view_change", "monitoring_change", "", _changes),
    Card(
        "Failed pages, 24 h",
        "crawling.view_crawltask",
        "crawling_crawltask",
        "?status__exact=failed",
        _failed_pages,
        alarming=True,
    ),
    Card(
        "Open deliveries",
        "notifications.view_delivery",
        "notifications_delivery",
        "?status__exact=retrying",
        _open_deliveries,
    ),
    Card(
        "Failed deliveries, 24 h",
        "notifications.view_delivery",
        "notifications_delivery",
        "?status__exact=exhausted",
        _failed_deliveries,
        alarming=True,
    ),
)
