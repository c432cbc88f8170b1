"""Pictures on the crawler's screens."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.db.models.functions import TruncHour
from django.http import HttpRequest
from django.utils.safestring import SafeString

from common import plots
from common.console import Detailed, Pictured
from common.plots import Series
from crawling import pulses
from crawling.models import CrawlError, CrawlTask

FUNNEL_OF = 10_000
CHARTED = 60
HOUR = dt.timedelta(hours=1)
KINDS = tuple(CrawlTask.Category)
# Which states of a task belong to which colour of the funnel.
PARTS = {
    "Waiting": ("info", ("pending", "queued", "downloaded", "queued_parse")),
    "At work": ("warn", ("crawling", "parsing")),
    "Done": ("good", ("completed",)),
    "Failed": ("bad", ("failed",)),
    "Held": ("quiet", ("paused", "cancelled")),
}
# In the order in which a task passes them.
STATES = [
    "pending",
    "queued",
    "crawling",
    "downloaded",
    "queued_parse",
    "parsing",
    "completed",
    "failed",
    "paused",
    "cancelled",
]
STATE_LABELS = {"queued_parse": "to parse"}
CATEGORY_PARTS = {
    "No answer": ("warn", ("network", "timeout")),
    "Refused": ("bad", ("http", "blocked", "too_large")),
    "Not allowed": ("quiet", ("robots",)),
    "Not readable": ("info", ("parse", "validation", "internal")),
}


class Funnel(Pictured):
    """How far the tasks of the list have come."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        shown = super().get_changelist_instance(request)  # type: ignore[misc]
        request.tasks_shown = shown.queryset  # type: ignore[attr-defined]
        return shown

    def plots(self, request: HttpRequest) -> list[str]:
        return [funnel(request.tasks_shown)]  # type: ignore[attr-defined]


def funnel(tasks: QuerySet[CrawlTask]) -> SafeString:
    states = Counter(tasks.values_list("status", flat=True)[:FUNNEL_OF])
    series = [
        Series(name, tone, [states[one] if one in members else 0 for one in STATES])
        for name, (tone, members) in PARTS.items()
    ]
    labels = [STATE_LABELS.get(one, one) for one in STATES]
    of = f"the newest {FUNNEL_OF:,}" if states.total() == FUNNEL_OF else "all of this list"
    return plots.bars(
        f"Tasks by state, {of}", labels, series, width=plots.WIDE, empty="No tasks yet."
    )


class Strip(Detailed):
    """The last requests of each row, one small bar each."""

    read_pulses = staticmethod(pulses.of_domains)

    def add_details(self, rows: list[Any]) -> None:
        found = self.read_pulses([row.pk for row in rows])
        for row in rows:
            row.beats = found.get(row.pk, [])

    @admin.display(description=f"Last {pulses.LAST}", empty_value="—")
    def strip(self, row: Any) -> str | None:
        beats = row.beats
        ticks = [plots.Tick(beat.tone, beat.told) for beat in beats]
        return plots.ticks(ticks, title=f"The last {len(ticks)} requests") if ticks else None

    @admin.display(description="Answer times", empty_value="No requests yet")
    def latency(self, row: Any) -> str | None:
        beats = self.read_pulses([row.pk], last=CHARTED).get(row.pk, [])
        if not beats:
            return None
        values = [beat.response_ms for beat in beats]
        labels = [f"{beat.at:%H:%M:%S}" for beat in beats]
        title = f"The last {len(beats)} requests (UTC)"
        return plots.lines(title, labels, [Series("answer", "info", values)], unit="ms")


@dataclass(frozen=True, slots=True)
class CategoryRow:
    value: str
    label: str
    count: int
    curve: SafeString


def errors_of_a_day(now: dt.datetime) -> tuple[SafeString, list[CategoryRow]]:
    """By the hour: all together, and each category with a curve of its own."""
    start = now.replace(minute=0, second=0, microsecond=0) - 23 * HOUR
    hours = [start + n * HOUR for n in range(24)]
    counted = _errors_since(start)
    series = [
        Series(name, tone, [sum(counted[hour, one] for one in members) for hour in hours])
        for name, (tone, members) in CATEGORY_PARTS.items()
    ]
    labels = [f"{hour:%H}h" for hour in hours]
    empty = "No errors: all is well."
    plot = plots.bars("Errors of 24 hours (UTC)", labels, series, empty=empty)
    rows = [_category_row(kind, [counted[hour, kind.value] for hour in hours]) for kind in KINDS]
    return plot, sorted((row for row in rows if row.count), key=lambda row: -row.count)


def _category_row(kind: CrawlTask.Category, values: list[int]) -> CategoryRow:
    curve = plots.sparkline(values, title=f"{kind.label} by the hour")
    return CategoryRow(kind.value, str(kind.label), sum(values), curve)


def _errors_since(start: dt.datetime) -> Counter[tuple[dt.datetime, str]]:
    rows = CrawlError.objects.filter(occurred_at__gte=start).order_by()
    grouped = rows.annotate(hour=TruncHour("occurred_at", tzinfo=dt.UTC)).values_list(
        "hour", "category"
    )
    return Counter({(hour, kind): n for hour, kind, n in grouped.annotate(n=Count("id"))})
