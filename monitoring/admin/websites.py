from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.admin import actor_of
from accounts.audit import Actor
from common.console import (
    BAD,
    GOOD,
    INFO,
    WARN,
    add_refusal,
    badge,
    do_each,
    inside_link,
    moment,
    words,
)
from common.errors import Refused
from monitoring import reparsing, schedules, websites
from monitoring.admin.reparsing import Reparsed, Road
from monitoring.admin.wording import verdict_text
from monitoring.models import Product, Website
from monitoring.registration import Registration, register_website
from notifications import endpoints

WEBSITE_COLOURS = {"pending_approval": WARN, "active": GOOD, "paused": INFO, "failed": BAD}
RUN_COLOURS = {"success": GOOD, "partial_success": WARN, "failed": BAD}


def patterns_field(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text=help_text,
    )


class WebsiteForm(forms.ModelForm):  # type: ignore[type-arg]
    """Saving is the affair of the job modules; what they refuse shows at the field."""

    actor: Actor
    seed_urls = forms.CharField(
        label="Seed URLs",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Where discovery starts, one per line; else the base URL.",
    )
    webhook_endpoint_url = forms.CharField(
        label="Webhook URL",
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Hears about this website only, signed with the client's secret.",
    )

    auto_approve_score = forms.FloatField(
        label="Approve from score",
        required=False,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
        help_text="Candidates with this score or more need nobody's approval; empty: all do.",
    )
    auto_approve_include = patterns_field("Only these URLs", "/p/* means all below; empty: all.")
    auto_approve_exclude = patterns_field("But not these URLs", "One pattern per line.")
    banned_patterns = patterns_field(
        "Banned URLs", "Neither read nor candidates: /outlet/* One pattern per line."
    )

    class Meta:
        model = Website
        fields = [
            "client",
            "base_url",
            "seed_urls",
            "name",
            "kind",
            "crawl_frequency_minutes",
            "price_change_threshold_pct",
            "price_change_threshold_abs",
            "retention_days",
            "crawl_profile",
            "currency",
            "locale",
            "webhook_enabled",
            "discovery_max_pages",
        ]
        labels = {
            "base_url": "Base URL",
            "crawl_frequency_minutes": "Crawl frequency",
            "price_change_threshold_pct": "Threshold in percent",
            "price_change_threshold_abs": "Threshold in money",
        }
        help_texts = {
            "price_change_threshold_pct": "Tell about price changes of at least so many percent,",
            "price_change_threshold_abs": "or of at least this amount.",
            "retention_days": "30 to 365.",
            "currency": "For pages that leave it open: an ISO code such as EUR.",
            "locale": "For pages that leave it open: such as de-CH.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            urls = endpoints.website_endpoint_urls([self.instance.pk])
            self.initial["webhook_endpoint_url"] = urls.get(self.instance.pk, "")
            self._show_rules()
        elif "name" in self.fields:
            self.fields["name"].required = False
            self.fields["name"].help_text = "Else the host."

    def _show_rules(self) -> None:
        rule = self.instance.auto_approve or {}
        self.initial["auto_approve_score"] = rule.get("min_score")
        for name in ("include", "exclude"):
            self.initial[f"auto_approve_{name}"] = "\n".join(rule.get(name, []))
        self.initial["banned_patterns"] = "\n".join(self.instance.banned_patterns)

    def clean_seed_urls(self) -> list[str]:
        return str(self.cleaned_data["seed_urls"]).split()

    def clean(self) -> dict[str, Any]:
        """The rule is three fields here and one value everywhere else."""
        data: dict[str, Any] = super().clean() or {}
        score = data.pop("auto_approve_score", None)
        lists = {
            name: str(data.pop(f"auto_approve_{name}", "")).split()
            for name in ("include", "exclude")
        }
        data["auto_approve"] = None if score is None else {"min_score": score, **lists}
        data["banned_patterns"] = str(data.get("banned_patterns", "")).split()
        return data

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.instance = self._register() if self.instance._state.adding else self._update()
        except Refused as refused:
            add_refusal(self, refused)

    def _register(self) -> Website:
        given = self._given(self.cleaned_data)
        client = given.pop("client")
        return register_website(client, Registration(**given), actor=self.actor)

    def _update(self) -> Website:
        changes: Any = self._given(self.changed_data)
        return websites.update_website(self.instance, actor=self.actor, **changes)

    def _given(self, names: Iterable[str]) -> dict[str, Any]:
        named = {re.sub("^auto_approve_.*", "auto_approve", name) for name in names}
        given = {name: self.cleaned_data[name] for name in named}
        if "crawl_profile" in given:
            profile = given.pop("crawl_profile")
            given["crawl_profile_id"] = profile.pk if profile else None
        return given


@admin.register(Website)
class WebsiteAdmin(Reparsed, ModelAdmin):  # type: ignore[misc]
    reparse_road = Road(reparsing.compare_website, reparsing.reparse_website)
    form = WebsiteForm
    list_display = [
        "name",
        "client",
        "state",
        "schedule",
        "next_run",
        "last_result",
        "watched",
        "failures",
    ]
    list_filter = ["status", "kind", "client"]
    list_select_related = ["client", "periodic_task__crontab", "periodic_task__interval"]
    search_fields = ["name", "base_url", "client__name"]
    autocomplete_fields = ["client"]
    actions = ["crawl_now", "discover_now", "pause", "resume"]
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
        shown += ["test_verdict", "found"]
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
