from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.admin import ModelAdmin

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    Detailed,
    badge,
    do_each,
    inside_link,
    moment,
    words,
)
from common.console_csv import CsvList
from crawling.trends import last_runs
from monitoring import reparsing, schedules, websites
from monitoring.admin.debugger import NAME as DEBUGGER
from monitoring.admin.importing import ImportPage, WebsiteListForm
from monitoring.admin.pictures import run_strip
from monitoring.admin.reparsing import Reparsed, Road
from monitoring.admin.website_form import WebsiteForm
from monitoring.admin.wording import verdict_text
from monitoring.models import Product, Website

WEBSITE_COLOURS = {"pending_approval": WARN, "active": GOOD, "paused": INFO, "failed": BAD}
RUN_COLOURS = {"success": GOOD, "partial_success": WARN, "failed": BAD}


@admin.register(Website)
class WebsiteAdmin(Reparsed, CsvList, ImportPage, Detailed, ModelAdmin):  # type: ignore[misc]
    reparse_road = Road(reparsing.compare_website, reparsing.reparse_website)
    form = WebsiteForm
    list_display = [
        "name",
        "client",
        "kind",
        "state",
        "schedule",
        "next_run",
        "last_result",
        "strip",
        "watched",
        "failures",
    ]
    list_per_page = 50
    import_form = WebsiteListForm
    csv_columns = [
        "id",
        "name",
        "base_url",
        "seed_urls",
        "client__name",
        "kind",
        "status",
        "crawl_frequency_minutes",
        "price_change_threshold_pct",
        "retention_days",
        "approved_product_count",
        "last_crawl_status",
        "last_successful_crawl_at",
        "consecutive_failures",
    ]
    list_filter = ["status", "kind", "client"]
    list_select_related = ["client", "periodic_task__crontab", "periodic_task__interval"]
    search_fields = ["name", "base_url", "client__name"]
    autocomplete_fields = ["client"]
    actions = ["crawl_now", "discover_now", "pause", "resume", "dry_run"]
    actions_submit_line = ["crawl_this", "discover_this"]
    readonly_fields = [
        "state",
        "schedule_link",
        "last_run",
        "next_run",
        "last_result",
        "last_successful_crawl_at",
        "failures",
        "products",
        "again",
        "test_verdict",
        "found",
        "try_it",
    ]
    settings = [
        (
            "Rules",
            {
                "fields": [
                    "crawl_frequency_minutes",
                    "price_change_threshold_pct",
                    "price_change_threshold_abs",
                    "retention_days",
                    "crawl_profile",
                ]
            },
        ),
        ("Reading", {"fields": ["currency", "locale"]}),
        (
            "Discovery",
            {
                "fields": [
                    "discovery_max_pages",
                    "auto_approve_score",
                    "auto_approve_include",
                    "auto_approve_exclude",
                    "banned_patterns",
                ]
            },
        ),
        ("Webhook", {"fields": ["webhook_endpoint_url", "webhook_enabled"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            asked = ["client", "base_url", "seed_urls", "name", "kind"]
            return [(None, {"fields": asked}), *self.settings]
        shown = ["name", "client", "base_url", "seeds", "kind", "state", "products", "again"]
        shown += ["test_verdict", "found", "try_it"]
        runs = [
            "schedule_link",
            "last_run",
            "next_run",
            "last_result",
            "last_successful_crawl_at",
            "failures",
        ]
        return [(None, {"fields": shown}), ("Runs", {"fields": runs}), *self.settings]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Website]:
        return schedules.with_last_slot(super().get_queryset(request))

    def add_details(self, rows: list[Any]) -> None:
        runs = last_runs([website.pk for website in rows])
        for website in rows:
            website.runs = runs[website.pk]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fixed = ["client", "base_url", "seeds", "kind"] if obj else []
        return [*self.readonly_fields, *fixed]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        return type(form.__name__, (form,), {"actor": actor_of(request)})

    def save_model(self, request: HttpRequest, obj: Website, form: Any, change: Any) -> None:
        """The form has saved it; what is left is the pressed button, if any."""
        for button in self.get_actions_submit_line(request, obj.pk):
            if button.action_name in request.POST:
                button.method(request, obj)

    def delete_model(self, request: HttpRequest, obj: Website) -> None:
        websites.delete_website(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Website]) -> None:
        for website in queryset:
            websites.delete_website(website, actor=actor_of(request))

    def get_deleted_objects(
        self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """A summary: Django's own tree would load every product and change."""
        count = Product.objects.filter(website__in=[row.pk for row in objs]).count()
        counts = {"websites": len(objs), "products": count}
        return [str(row) for row in objs], counts, set(), []

    @admin.action(description="Crawl now", permissions=["change"])
    def crawl_now(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.crawl_now, "being crawled")

    @admin.action(description="Discover products", permissions=["change"])
    def discover_now(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.discover_now, "being discovered")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.pause, "paused")

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Website]) -> None:
        self._each(request, chosen, websites.resume, "resumed")

    @admin.action(description="Dry run: read a page of it, keep nothing", permissions=["change"])
    def dry_run(self, request: HttpRequest, chosen: QuerySet[Website]) -> HttpResponse | None:
        website = chosen.first()
        if website is None or chosen.count() > 1:
            messages.error(request, "Choose one website for a dry run.")
            return None
        return HttpResponseRedirect(dry_run_url(website))

    @admin.action(description="Save and crawl now", permissions=["change"])
    def crawl_this(self, request: HttpRequest, website: Website) -> None:
        self._each(request, [website], websites.crawl_now, "being crawled")

    @admin.action(description="Save and discover", permissions=["change"])
    def discover_this(self, request: HttpRequest, website: Website) -> None:
        self._each(request, [website], websites.discover_now, "being discovered")

    def _each(self, request: HttpRequest, rows: Any, job: Callable[..., object], done: str) -> None:
        actor = actor_of(request)
        do_each(request, rows, lambda website: job(website, actor=actor), done)

    @admin.display(description="Stored pages")
    def again(self, website: Website) -> str:
        return inside_link(self.reparse_url(website.pk), "Read again with the parser of today")

    @admin.display(description="Dry run")
    def try_it(self, website: Website) -> str:
        return inside_link(dry_run_url(website), "Read a page of it, and keep nothing")

    @admin.display(description="Last 30 runs")
    def strip(self, website: Website) -> str:
        return run_strip(getattr(website, "runs", ()))

    @badge("Status", WEBSITE_COLOURS, ordering="status")
    def state(self, website: Website) -> str:
        return website.get_status_display()

    @admin.display(description="Schedule")
    def schedule(self, website: Website) -> str:
        return schedules.describe(website)

    @admin.display(description="Schedule")
    def schedule_link(self, website: Website) -> str:
        task = website.periodic_task
        if task is None:
            return schedules.describe(website)
        url = reverse("admin:django_celery_beat_periodictask_change", args=[task.pk])
        return inside_link(url, schedules.describe(website))

    @admin.display(description="Last run by schedule", empty_value="—")
    def last_run(self, website: Website) -> str | None:
        return moment(schedules.last_run_at(website))

    @admin.display(description="Next run", empty_value="—")
    def next_run(self, website: Website) -> str | None:
        return moment(schedules.next_run_at(website))

    @badge("Last result", RUN_COLOURS, ordering="last_crawl_status")
    def last_result(self, website: Website) -> str:
        return words(website.last_crawl_status) or "None yet"

    @admin.display(description="Products", ordering="approved_product_count")
    def watched(self, website: Website) -> int:
        return website.approved_product_count

    @admin.display(description="Failures", ordering="consecutive_failures")
    def failures(self, website: Website) -> int:
        return website.consecutive_failures

    @admin.display(description="Test crawl")
    def test_verdict(self, website: Website) -> str:
        return verdict_text(website.test_crawl)

    @admin.display(description="Discovery")
    def found(self, website: Website) -> str:
        url = reverse("admin:monitoring_foundurl_changelist")
        return inside_link(f"{url}?website__id__exact={website.pk}", "Found URLs, and why")

    @admin.display(description="Seed URLs")
    def seeds(self, website: Website) -> str:
        return "\n".join(website.seed_urls)

    @admin.display(description="Products")
    def products(self, website: Website) -> str:
        url = reverse("admin:monitoring_product_changelist")
        text = f"{website.approved_product_count} watched"
        return inside_link(f"{url}?website__id__exact={website.pk}", text)


def dry_run_url(website: Website) -> str:
    return f"{reverse(f'admin:{DEBUGGER}')}?website={website.pk}"
