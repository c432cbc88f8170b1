"""The first page of the console: how things stand, by a handful of cheap counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from common.plots import WIDE, Series, bars, lines
from crawling import trends
from crawling.models import CrawlJob, CrawlTask, Domain
from crawling.trends import Hour
from monitoring.admin.pictures import changes_per_day
from monitoring.models import Change, Product, Website
from notifications.models import Delivery

# Nobody reads larger numbers here, and counting them all takes long.
MOST = 1000
DAY = dt.timedelta(days=1)
MOST_DELIVERIES = 10_000
ALL_WELL, UNKNOWN = "100 %", "—"
QUEUED = (CrawlTask.Status.PENDING, CrawlTask.Status.QUEUED)
NOT_DELIVERED = (Delivery.Status.FAILED, Delivery.Status.EXHAUSTED)
NO_CRAWL = (
    "No request in 24 hours."
    if settings.CRAWL_LEDGER
    else "Not known: the politeness ledger is off (CRAWL_LEDGER)."
)
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
    # Answers a number, or a text that is shown as it is.
    count: Callable[[], int | str]
    # A number above zero, or a share below all, that somebody should look at.
    alarming: bool = False


def add_overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold: ``DASHBOARD_CALLBACK``."""
    context["title"] = "Overview"
    context["cards"] = [_shown(card) for card in CARDS if request.user.has_perm(card.permission)]
    context["plots"] = partial(_plots, request)
    if request.user.has_perm("monitoring.view_website") and not Website.objects.exists():
        context["curl"] = CURL.format(url=settings.PUBLIC_URL)
        context["may_register"] = request.user.has_perm("monitoring.add_website")
    return context


def _plots(request: HttpRequest) -> Iterator[str]:
    if request.user.has_perm("crawling.view_crawltask"):
        hours = trends.last_hours()
        yield _requests_per_hour(hours)
        yield _fetch_times(hours)
    if request.user.has_perm("monitoring.view_change"):
        yield changes_per_day(WIDE)


def _requests_per_hour(hours: Sequence[Hour]) -> str:
    series = [
        Series("new page", "good", [hour.new for hour in hours]),
        Series("unchanged", "info", [hour.unchanged for hour in hours]),
        Series("failed", "bad", [hour.failed for hour in hours]),
    ]
    return bars("Crawls per hour", _labels(hours), series, empty=NO_CRAWL)


def _fetch_times(hours: Sequence[Hour]) -> str:
    series = [
        Series("half are faster (p50)", "info", [hour.median_ms for hour in hours]),
        Series("95 % are faster (p95)", "warn", [hour.slow_ms for hour in hours]),
    ]
    return lines("Fetch time", _labels(hours), series, unit="ms", empty=NO_CRAWL)


def _labels(hours: Sequence[Hour]) -> list[str]:
    return [f"{timezone.localtime(hour.at):%H:%M}" for hour in hours]


def _shown(card: Card) -> dict[str, Any]:
    count = card.count()
    return {
        "title": card.title,
        "value": f"{MOST}+" if isinstance(count, int) and count > MOST else str(count),
        "link": f"{reverse(f'admin:{card.screen}_changelist')}{card.query}",
        "alarming": card.alarming and count not in (0, ALL_WELL, UNKNOWN),
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


def _due() -> int:
    return _up_to_most(
        CrawlTask.objects.filter(status__in=QUEUED, scheduled_at__lte=timezone.now())
    )


def _queued() -> int:
    return _up_to_most(CrawlTask.objects.filter(status__in=QUEUED))


def _open_circuits() -> int:
    return Domain.objects.exclude(breaker_state=Domain.Breaker.CLOSED).count()


def _delivered() -> str:
    """Of the newest deliveries of a day; what still waits counts for neither side."""
    recent = Delivery.objects.filter(created_at__gte=timezone.now() - DAY)
    newest = recent.order_by("-created_at", "-id").values("status")[:MOST_DELIVERIES]
    settled = newest.aggregate(
        good=Count("status", filter=Q(status=Delivery.Status.SUCCESS)),
        bad=Count("status", filter=Q(status__in=NOT_DELIVERED)),
    )
    count = settled["good"] + settled["bad"]
    return f"{100 * settled['good'] / count:.4g} %" if count else UNKNOWN


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
        "Pages due now",
        "crawling.view_crawltask",
        "crawling_crawltask",
        "?status__exact=pending",
        _due,
    ),
    Card("Pages queued", "crawling.view_crawljob", "crawling_crawljob", "", _queued),
    Card(
        "Failed pages, 24 h",
        "crawling.view_crawltask",
        "crawling_crawltask",
        "?status__exact=failed",
        _failed_pages,
        alarming=True,
    ),
    Card(
        "Open circuits",
        "crawling.view_domain",
        "crawling_domain",
        "?breaker_state__exact=open",
        _open_circuits,
        alarming=True,
    ),
    Card(
        "Webhooks delivered, 24 h",
        "notifications.view_delivery",
        "notifications_delivery",
        "?status__exact=exhausted",
        _delivered,
        alarming=True,
    ),
)
