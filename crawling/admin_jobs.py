"""The screen of jobs: their progress while it happens, and what people do to whole jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    Pictured,
    ReadOnly,
    badge,
    do_each,
    inside_link,
)
from common.console_csv import CsvList
from common.plots import WIDE, Series, bars
from crawling import job_control, trends
from crawling.models import CrawlJob, CrawlTask

JOB_COLOURS = {
    "running": INFO,
    "success": GOOD,
    "partial_success": WARN,
    "paused": WARN,
    "failed": BAD,
}


def pages_per_hour() -> str:
    hours = trends.job_hours()
    series = [
        Series("done", "good", [hour.done for hour in hours]),
        Series("failed", "bad", [hour.failed for hour in hours]),
        Series("waiting", "quiet", [hour.waiting for hour in hours]),
    ]
    labels = [f"{timezone.localtime(hour.at):%H:%M}" for hour in hours]
    empty = "No job in 24 hours."
    return bars("Pages of the jobs begun in each hour", labels, series, width=WIDE, empty=empty)


@admin.register(CrawlJob)
class CrawlJobAdmin(CsvList, Pictured, ReadOnly, ModelAdmin):  # type: ignore[misc]
    empty_text = "No job yet. Registering or crawling a website starts one."
    list_display = [
        "started",
        "kind",
        "target",
        "state",
        "done",
        "fine",
        "changed",
        "failed",
        "took",
        "trigger",
    ]
    list_filter = ["status", "kind", "triggered_by", "client"]
    list_select_related = ["client"]
    search_fields = ["=id", "=website_id", "=request_id"]
    show_full_result_count = False
    paginator = InfinitePaginator
    list_per_page = 50
    actions = ["pause", "resume", "cancel", "retry"]
    change_form_outer_before_template = "admin/crawling/job_live.html"
    csv_columns = [
        "id",
        "created_at",
        "kind",
        "website_id",
        "client__name",
        "status",
        "total",
        "processed",
        "changes",
        "errors",
        "retries",
        "triggered_by",
        "started_at",
        "completed_at",
    ]
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

    @admin.action(description="Pause", permissions=["cancel"])
    def pause(self, request: HttpRequest, chosen: QuerySet[CrawlJob]) -> None:
        self._each(request, chosen, job_control.pause_job, "paused")

    @admin.action(description="Resume", permissions=["cancel"])
    def resume(self, request: HttpRequest, chosen: QuerySet[CrawlJob]) -> None:
        self._each(request, chosen, job_control.resume_job, "resumed")

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[CrawlJob]) -> None:
        self._each(request, chosen, job_control.cancel_job, "cancelled")

    @admin.action(description="Retry the failed pages", permissions=["cancel"])
    def retry(self, request: HttpRequest, chosen: QuerySet[CrawlJob]) -> None:
        self._each(request, chosen, job_control.retry_job, "tried again")

    def _each(self, request: HttpRequest, jobs: Any, act: Callable[..., Any], done: str) -> None:
        actor = actor_of(request)
        do_each(request, jobs, lambda job: act(job, actor=actor), done)

    def plots(self, request: HttpRequest) -> list[str]:
        return [pages_per_hour()]

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
        """While it runs, console.js asks again for the row it stands in."""
        return format_html(
            '<span id="job-{}" class="nowrap"{}><progress class="progress" value="{}" max="{}">'
            "</progress> {}\u00a0/\u00a0{}</span>",
            *(job.pk, SafeString(" data-live") if job.status in CrawlJob.LIVE else ""),
            *(job.processed, job.total or 1, job.processed, job.total),
        )

    @admin.display(description="Changed", ordering="changes")
    def changed(self, job: CrawlJob) -> int:
        return job.changes

    @admin.display(description="Failed", ordering="errors")
    def failed(self, job: CrawlJob) -> str:
        return format_html(
            '<span class="{}">{}</span>', "plot-bad" if job.errors else "", job.errors
        )

    @admin.display(description="Trigger", ordering="triggered_by")
    def trigger(self, job: CrawlJob) -> str:
        return job.get_triggered_by_display()

    @admin.display(description="OK")
    def fine(self, job: CrawlJob) -> int:
        return max(job.processed - job.errors, 0)

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

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        shown = {"job": self.get_object(request, object_id)}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **shown})
