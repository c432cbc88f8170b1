"""Screens of other packages, in the look of the console."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django_celery_beat import admin as beat
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from django_celery_results import admin as _results  # noqa: F401
from django_celery_results.models import GroupResult, TaskResult
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action as unfold_action
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.admin import Audited, actor_of
from common.console import (
    BAD,
    GOOD,
    WARN,
    Buttons,
    ReadOnly,
    Titled,
    badge,
    do_each,
    inside_link,
    moment,
)
from common.console_csv import CsvList
from monitoring.models import Website
from monitoring.schedules import (
    TASK,
    interval_like,
    interval_of,
    last_run_at,
    next_run_of,
    seconds_of,
    with_last_slot,
    words_of,
)
from obsrv import schedule_control
from obsrv.schedule_control import website_of

WEBSITE_MIN_SECONDS = 60
MINUTE, HOUR = 60, 3600
INTERVALS = (
    15 * MINUTE,
    30 * MINUTE,
    *(hours * HOUR for hours in (1, 2, 3, 4, 6, 8, 12, 24)),
)
HELP = {
    "enabled": "Off: it does not run until it is switched on again.",
    "interval": "Run again and again after this time,",
    "crontab": "or at times of the day. Choosing one replaces the other.",
    "name": "Must be unique.",
    "description": "What it is for.",
    "regtask": "What runs; one of the tasks of this installation.",
    "task": "Or the name of a task that is not in the list.",
    "args": "A JSON list.",
    "kwargs": "A JSON object.",
    "one_off": "Run once, then switch off.",
    "start_time": "Do not run before.",
    "expires": "Do not run after.",
    "expire_seconds": "A run that no worker has begun by then is left out.",
    "queue": "Empty: the queue of the task.",
}
TASK_COLOURS = {"success": GOOD, "failure": BAD, "retry": WARN}

# Their screens are registered by now, since their modules are imported; ours take over.
# Nobody schedules crawls by the sun or for one moment, so those two do not come back.
admin.site.unregister([ClockedSchedule, CrontabSchedule, IntervalSchedule])
admin.site.unregister([PeriodicTask, SolarSchedule, GroupResult, TaskResult])


class TaskSelect(UnfoldAdminSelectWidget, beat.TaskSelectWidget):  # type: ignore[misc]
    pass


class ScheduleForm(beat.PeriodicTaskForm):  # type: ignore[misc]
    """Either an interval or a cron line: choosing one replaces the other."""

    every = forms.TypedChoiceField(
        label="Interval",
        required=False,
        coerce=int,
        empty_value=None,
        widget=UnfoldAdminSelectWidget,
        help_text="Crawl again and again after this time,",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = {name: getattr(self.instance, name) for name in ("interval", "crontab")}
        for name, widget in (("regtask", TaskSelect()), ("task", UnfoldAdminTextInputWidget())):
            if name in self.fields:
                self.fields[name].widget = widget
        for name, text in HELP.items():
            if name in self.fields:
                self.fields[name].help_text = text
        if "interval" in self.fields:
            del self.fields["every"]
        else:
            self._offer_intervals()

    def _offer_intervals(self) -> None:
        current = self.now["interval"]
        lengths = {*INTERVALS, *([seconds_of(current)] if current else [])}
        words = [(n, words_of(PeriodicTask(interval=interval_like(n)))) for n in sorted(lengths)]
        self.fields["every"].choices = [("", "None: by the cron line"), *words]
        self.initial["every"] = seconds_of(current) if current else ""

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean()
        asked = "every" if "every" in self.fields else "interval"
        interval, crontab = data.get(asked), data.get("crontab")
        if interval and crontab:
            # The one that was there before gives way.
            if self.now["crontab"] == crontab and asked in self.changed_data:
                crontab = None
            elif asked not in self.changed_data and "crontab" in self.changed_data:
                interval = None
            else:
                self.add_error(asked, "Choose either an interval or a cron line.")
        if not interval and not crontab and asked not in self.errors:
            self.add_error(asked, "Choose an interval or a cron line.")
        if self.errors:
            return data
        if isinstance(interval, int):
            interval = interval_of(interval)
        self._refuse_haste(asked, data, interval)
        self.instance.interval = data["interval"] = interval
        self.instance.crontab = data["crontab"] = crontab
        return data

    def _refuse_haste(self, asked: str, data: dict[str, Any], interval: Any) -> None:
        hasty = interval is not None and seconds_of(interval) < WEBSITE_MIN_SECONDS
        if hasty and data["task"] == TASK and asked in self.changed_data:
            self.add_error(asked, "A website is crawled once a minute at most.")

    def validate_unique(self) -> None:
        # The model's own check speaks of kinds of schedules that the console does not have.
        if not self.errors:
            super().validate_unique()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(CsvList, Buttons, Titled, Audited, beat.PeriodicTaskAdmin, ModelAdmin):  # type: ignore[misc]
    form = ScheduleForm
    csv_columns = [
        "name",
        "description",
        "task",
        "interval__every",
        "interval__period",
        "crontab__minute",
        "crontab__hour",
        "crontab__day_of_week",
        "crontab__timezone",
        "enabled",
        "last_run_at",
        "total_run_count",
    ]
    change_form_template = None
    date_hierarchy = None
    list_display = ["label", "words", "zone", "on", "last_run", "next_run"]
    list_filter = ["enabled", "task"]
    actions = ["run_tasks", "enable_tasks", "disable_tasks"]
    actions_submit_line = ["run_this", "toggle_this"]
    search_fields = ["name", "description", "task"]
    readonly_fields = ["last_run", "words", "next_run", "website_link"]
    task_fields = ["regtask", "task", "args", "kwargs"]
    timing_fields = ["one_off", "start_time", "expires", "expire_seconds", "queue"]
    when_fields = ["words", "last_run", "next_run"]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is not None and obj.task == TASK:
            inner = ["name", "description", *self.task_fields, *self.timing_fields]
            return [
                (None, {"fields": ["website_link", "enabled"]}),
                ("When", {"fields": ["every", "crontab", *self.when_fields]}),
                ("Inner workings", {"fields": inner, "classes": ["collapse"]}),
            ]
        closed = ["collapse"] if obj else []
        return [
            (None, {"fields": ["name", "description", "enabled"]}),
            ("When", {"fields": ["interval", "crontab", *(self.when_fields if obj else [])]}),
            ("Task", {"fields": self.task_fields, "classes": closed}),
            ("Execution", {"fields": self.timing_fields, "classes": ["collapse"]}),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PeriodicTask]:
        rows: QuerySet[PeriodicTask] = super().get_queryset(request)
        shops = with_last_slot(Website.objects.all())
        return rows.prefetch_related(Prefetch("website", shops))

    @admin.action(description="Run now", permissions=["change"])
    def run_tasks(self, request: HttpRequest, queryset: Any) -> None:
        job = partial(schedule_control.run_now, actor=actor_of(request))
        do_each(request, queryset, job, "started")

    @admin.action(description="Switch on", permissions=["change"])
    def enable_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        self._switch(request, queryset, on=True)

    @admin.action(description="Switch off", permissions=["change"])
    def disable_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        self._switch(request, queryset, on=False)

    def _switch(self, request: HttpRequest, queryset: Any, *, on: bool) -> None:
        job = partial(schedule_control.switch, on=on, actor=actor_of(request))
        do_each(request, queryset, job, f"switched {'on' if on else 'off'}")

    @unfold_action(description="Run now", permissions=["change"], icon="play_arrow")  # type: ignore[untyped-decorator]
    def run_this(self, request: HttpRequest, task: PeriodicTask) -> None:
        self.run_tasks(request, [task])

    @unfold_action(description="Switch on or off", permissions=["change"], icon="toggle_on")  # type: ignore[untyped-decorator]
    def toggle_this(self, request: HttpRequest, task: PeriodicTask) -> None:
        self._switch(request, [task], on=not task.enabled)

    def title_of(self, task: PeriodicTask) -> str:
        return self.label(task)

    @admin.display(description="Schedule of", ordering="name")
    def label(self, task: PeriodicTask) -> str:
        # The entry of a website is named by its id and described by its name.
        website = website_of(task)
        return website.name if website else str(task.name).removeprefix("obsrv: ").capitalize()

    @admin.display(description="Website", empty_value="—")
    def website_link(self, task: PeriodicTask) -> str | None:
        website = website_of(task)
        if website is None:
            return None
        url = reverse("admin:monitoring_website_change", args=[website.pk])
        return inside_link(url, website.name)

    @admin.display(description="Enabled", boolean=True, ordering="enabled")
    def on(self, task: PeriodicTask) -> bool:
        return bool(task.enabled)

    @admin.display(description="In words")
    def words(self, task: PeriodicTask) -> str:
        return words_of(task)

    @admin.display(description="Time zone", empty_value="—")
    def zone(self, task: PeriodicTask) -> str | None:
        return str(task.crontab.timezone) if task.crontab else None

    @admin.display(description="Last run", ordering="last_run_at", empty_value="—")
    def last_run(self, task: PeriodicTask) -> str | None:
        return moment(_last_run_of(task))

    @admin.display(description="Next run", empty_value="—")
    def next_run(self, task: PeriodicTask) -> str | None:
        return moment(next_run_of(task, _last_run_of(task)))


def _last_run_of(task: PeriodicTask) -> dt.datetime | None:
    website = website_of(task)
    return last_run_at(website) if website else task.last_run_at


class UsedBy(beat.PeriodicTaskInline, TabularInline):  # type: ignore[misc]
    fields = readonly_fields = ["name", "description", "enabled"]
    verbose_name = verbose_name_plural = "used by"


class ScheduleRowAdmin(Audited, ModelAdmin):  # type: ignore[misc]
    inlines = [UsedBy]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deleting one would delete the schedules that use it."""
        unused = obj is None or not obj.periodictask_set.exists()
        return unused and bool(super().has_delete_permission(request, obj))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_actions(request)
        found.pop("delete_selected", None)
        return found


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(ScheduleRowAdmin, beat.CrontabScheduleAdmin):  # type: ignore[misc]
    inlines = [UsedBy]
    list_display = ["human_readable", "__str__"]


class IntervalForm(forms.ModelForm):  # type: ignore[type-arg]
    """A row is shared: what is written here holds for every schedule that uses it."""

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors or self.instance.pk is None or not self.changed_data:
            return data
        wanted = IntervalSchedule(every=data["every"], period=data["period"])
        shops = self.instance.periodictask_set.filter(task=TASK).count()
        if shops and seconds_of(wanted) < WEBSITE_MIN_SECONDS:
            raise forms.ValidationError(
                f"{shops} website{'s' * (shops > 1)} would be crawled by it, and a website is crawled "
                "once a minute at most. Add another interval for the schedule that needs it."
            )
        return data


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ScheduleRowAdmin, beat.IntervalScheduleAdmin):  # type: ignore[misc]
    form = IntervalForm
    inlines = [UsedBy]


@admin.register(TaskResult)
class TaskResultAdmin(CsvList, ReadOnly, ModelAdmin):  # type: ignore[misc]
    csv_columns = ["task_id", "task_name", "periodic_task_name", "status", "worker", "date_done"]
    list_display = ["date_done", "task_name", "periodic_task_name", "state", "worker"]
    empty_text = "No results: the tasks of Obsrv keep theirs in jobs and deliveries."
    list_filter = ["status"]
    search_fields = ["=task_id", "=task_name"]
    show_full_result_count = False
    paginator = InfinitePaginator

    @badge("Status", TASK_COLOURS, ordering="status")
    def state(self, result: TaskResult) -> str:
        return str(result.status).capitalize()
