from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    ReadOnly,
    Titled,
    badge,
    do_each,
    inside_link,
    outside_link,
    short_url,
)
from common.console_csv import CsvList
from common.console_search import FoundById
from crawling import jobs
from crawling.admin_domains import DomainAdmin
from crawling.admin_pages import StoredPageAdmin
from crawling.admin_plots import Funnel
from crawling.admin_proxies import ProxyAdmin
from crawling.admin_reading import TaskMeaning
from crawling.admin_tasks import ErrorGroups, TaskActions
from crawling.models import CrawlError, CrawlJob, CrawlTask

__all__ = ["DomainAdmin", "ProxyAdmin", "StoredPageAdmin"]

JOB_COLOURS = {
    "running": INFO,
    "success": GOOD,
    "partial_success": WARN,
    "paused": WARN,
    "failed": BAD,
}
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


@admin.register(CrawlJob)
class CrawlJobAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No job yet. Registering or crawling a website starts one."
    list_display = [
        "started",
        "kind",
        "target",
        "client",
        "state",
        "done",
        "changes",
        "errors",
        "took",
        "triggered_by",
    ]
    list_filter = ["status", "kind", "triggered_by"]
    list_select_related = ["client"]
    search_fields = ["=id", "=website_id", "=request_id"]
    show_full_result_count = False
    paginator = InfinitePaginator
    actions = ["cancel"]
    fieldsets = [
        (None, {"fields": ["kind", "client", "website", "state", "triggered_by", "slot_at"]}),
        ("Progress", {"fields": ["done", "changes", "errors", "retries", "error_summary"]}),
        ("Time", {"fields": ["created_at", "started_at", "completed_at", "took"]}),
        ("Origin", {"fields": ["priority", "parameters", "request_id", "pages"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CrawlJob]:
        rows: QuerySet[CrawlJob] = super().get_queryset(request)
        host = CrawlTask.objects.filter(job=OuterRef("pk")).values("domain__host")[:1]
        return rows.annotate(host=Subquery(host))

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("crawling.change_crawljob")

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[CrawlJob]) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda job: jobs.cancel(job, actor=actor), "cancelled")

    @admin.display(description="Created", ordering="created_at")
    def started(self, job: CrawlJob) -> Any:
        return job.created_at

    @admin.display(description="Target", empty_value="—")
    def target(self, job: CrawlJob) -> str | None:
        host: str | None = getattr(job, "host", None)
        return host

    @badge("Status", JOB_COLOURS, ordering="status")
    def state(self, job: CrawlJob) -> str:
        return job.get_status_display()

    @admin.display(description="Progress")
    def done(self, job: CrawlJob) -> str:
        bar = '<progress value="{}" max="{}" style="width:5rem"></progress>&nbsp;{}&nbsp;/&nbsp;{}'
        return format_html(bar, job.processed, job.total or 1, job.processed, job.total)

    @admin.display(description="Took", empty_value="—")
    def took(self, job: CrawlJob) -> str | None:
        if job.started_at is None or job.completed_at is None:
            return None
        seconds = (job.completed_at - job.started_at).total_seconds()
        return f"{seconds:.1f}\u00a0s" if seconds < 60 else f"{seconds / 60:.1f}\u00a0min"

    @admin.display(description="Website", empty_value="—")
    def website(self, job: CrawlJob) -> str | None:
        if job.website_id is None:
            return None
        try:
            # By name: websites are the affair of a layer above.
            url = reverse("admin:monitoring_website_change", args=[job.website_id])
        except NoReverseMatch:
            return str(job.website_id)
        return inside_link(url, getattr(job, "host", None) or str(job.website_id))

    @admin.display(description="Pages")
    def pages(self, job: CrawlJob) -> str:
        url = reverse("admin:crawling_crawltask_changelist")
        return inside_link(f"{url}?job__id__exact={job.pk}", f"{job.total} pages")


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

    def title_of(self, task: CrawlTask) -> str:
        return task.url if len(task.url) <= 80 else f"{task.url[:79]}…"

    @admin.display(description="URL")
    def page(self, task: CrawlTask) -> str:
        return short_url(task.url)

    @admin.display(description="Error", ordering="error_category", empty_value="—")
    def error(self, task: CrawlTask) -> str | None:
        return task.get_error_category_display() or None

    @admin.display(description="Due", ordering="scheduled_at")
    def due(self, task: CrawlTask) -> Any:
        return task.scheduled_at

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
    search_help_text = "A fingerprint or the id of a task."
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = ["occurred_at", "category", "domain", "task", "message", "trace", "fingerprint"]

    @admin.display(description="Message")
    def text(self, error: CrawlError) -> str:
        return error.message if len(error.message) <= 100 else f"{error.message[:99]}…"

    @admin.display(description="URL")
    def page(self, error: CrawlError) -> str:
        return short_url(error.task.url)
