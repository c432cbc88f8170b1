from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.timezone import localtime
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.paginator import InfinitePaginator

from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    ReadOnly,
    Titled,
    badge,
    outside_link,
    short_path,
    without_secrets,
)
from common.console_csv import CsvList
from common.console_search import FoundById
from crawling.admin_domains import DomainAdmin
from crawling.admin_jobs import CrawlJobAdmin
from crawling.admin_pages import StoredPageAdmin
from crawling.admin_plots import Funnel
from crawling.admin_proxies import ProxyAdmin
from crawling.admin_reading import TaskMeaning
from crawling.admin_tasks import ErrorGroups, TaskActions
from crawling.models import CrawlError, CrawlTask

__all__ = ["CrawlJobAdmin", "DomainAdmin", "ProxyAdmin", "StoredPageAdmin"]

TASK_COLOURS = {"crawling": INFO, "completed": GOOD, "failed": BAD, "paused": WARN}
ANSWER = ("http_status", "response_time_ms", "bytes", "from_cache", "proxy")


class HostFilter(TextFilter):  # type: ignore[misc]
    """Exact, so that the index answers."""

    title = "host"
    parameter_name = "host"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        host = self.value()
        return queryset.filter(domain__host=host.strip().lower()) if host else queryset


class PurposeFilter(admin.SimpleListFilter):
    """The consumers there are, not the values of a million rows."""

    title = "purpose"
    parameter_name = "purpose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.capitalize()) for name in settings.PAGE_CONSUMERS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(purpose=self.value()) if self.value() else queryset


@admin.register(CrawlTask)
class CrawlTaskAdmin(
    CsvList,
    FoundById,
    Funnel,
    TaskActions,
    TaskMeaning,
    Titled,
    ReadOnly,
    ModelAdmin,  # type: ignore[misc]
):
    csv_columns = [
        "id",
        "url",
        "domain__host",
        "purpose",
        "status",
        "priority",
        "retry_count",
        "max_retries",
        "http_status",
        "response_time_ms",
        "bytes",
        "proxy__host",
        "error_category",
        "error_message",
        "job_id",
        "scheduled_at",
        "completed_at",
        "created_at",
    ]
    empty_text = "No page has been asked for yet. Every job brings its pages here."
    list_display = [
        "page",
        "domain",
        "state",
        "priority",
        "tries",
        "http",
        "took",
        "via",
        "error",
        "due",
    ]
    list_filter = ["status", "error_category", PurposeFilter, HostFilter]
    list_filter_submit = True
    list_select_related = ["domain", "proxy"]
    id_fields = ["id", "job_id"]
    search_help_text = "The id of a task or of a job."
    show_full_result_count = False
    paginator = InfinitePaginator
    fieldsets = [
        (None, {"fields": ["address", "answered_by", "job", "domain", "client", "purpose"]}),
        ("State", {"fields": ["state", "priority", "scheduled_at", "completed_at", "depth"]}),
        ("Tries", {"fields": ["retry_count", "max_retries", "claims", "leased_until", "fence"]}),
        (
            "Answer",
            {"fields": [*ANSWER, "stored_page", "meaning"]},
        ),
        ("Error", {"fields": ["error_category", "error_message"]}),
    ]

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup == "job__id__exact" or bool(super().lookup_allowed(lookup, value, request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[CrawlTask]:
        rows = without_secrets(super().get_queryset(request), "proxy")
        return rows.defer("domain__robots_body", "domain__learned")

    def title_of(self, task: CrawlTask) -> str:
        return task.url if len(task.url) <= 80 else f"{task.url[:79]}…"

    @admin.display(description="URL")
    def page(self, task: CrawlTask) -> str:
        return short_path(task.url)

    @admin.display(description="Error", ordering="error_category", empty_value="—")
    def error(self, task: CrawlTask) -> str | None:
        return task.get_error_category_display() or None

    @admin.display(description="Due", ordering="scheduled_at", empty_value="—")
    def due(self, task: CrawlTask) -> str | None:
        """The hour of today, or the day; nothing of what is over."""
        if task.status in CrawlTask.TERMINAL:
            return None
        when, today = localtime(task.scheduled_at), localtime().date()
        return f"{when:%H:%M}" if when.date() == today else f"{when:%d\u00a0%b}"

    @admin.display(description="Retries", ordering="retry_count")
    def tries(self, task: CrawlTask) -> str:
        return f"{task.retry_count}\u00a0/\u00a0{task.max_retries}"

    @admin.display(description="HTTP", ordering="http_status", empty_value="—")
    def http(self, task: CrawlTask) -> int | None:
        return task.http_status

    @admin.display(description="Took", ordering="response_time_ms", empty_value="—")
    def took(self, task: CrawlTask) -> str | None:
        spent = task.response_time_ms
        return None if spent is None else f"{spent}\u00a0ms"

    @admin.display(description="Proxy", empty_value="—")
    def via(self, task: CrawlTask) -> str | None:
        return f"{task.proxy.host}:{task.proxy.port}" if task.proxy else None

    @admin.display(description="URL")
    def address(self, task: CrawlTask) -> str:
        return outside_link(task.url)

    @admin.display(description="Answered by", empty_value="—")
    def answered_by(self, task: CrawlTask) -> str:
        return outside_link(task.final_url)

    @badge("Status", TASK_COLOURS, ordering="status")
    def state(self, task: CrawlTask) -> str:
        return task.get_status_display()


@admin.register(CrawlError)
class CrawlErrorAdmin(CsvList, FoundById, ErrorGroups, ReadOnly, ModelAdmin):  # type: ignore[misc]
    csv_columns = [
        "id",
        "occurred_at",
        "category",
        "domain__host",
        "task__url",
        "message",
        "fingerprint",
    ]
    empty_text = "No errors: every page so far has answered well."
    list_display = ["occurred_at", "category", "text", "domain", "page"]
    list_filter = ["category", HostFilter]
    list_filter_submit = True
    list_select_related = ["domain", "task"]
    id_fields = ["id", "task_id"]
    text_fields = ["fingerprint"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CrawlError]:
        rows: QuerySet[CrawlError] = super().get_queryset(request)
        return rows.defer("trace", "domain__robots_body", "domain__learned")

    search_help_text = "A fingerprint or the id of a task."
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = ["occurred_at", "category", "domain", "task", "message", "trace", "fingerprint"]

    @admin.display(description="Message")
    def text(self, error: CrawlError) -> str:
        return error.message if len(error.message) <= 100 else f"{error.message[:99]}…"

    @admin.display(description="URL")
    def page(self, error: CrawlError) -> str:
        return short_path(error.task.url)
