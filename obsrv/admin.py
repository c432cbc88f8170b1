"""Screens of other packages, in the look of the console."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
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
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.admin import Audited
from common.console import ReadOnly
from monitoring.schedules import next_run_of, words_of

# Their screens are registered by now, since their modules are imported; ours take over.
# Nobody schedules crawls by the sun or for one moment, so those two do not come back.
admin.site.unregister([ClockedSchedule, CrontabSchedule, IntervalSchedule])
admin.site.unregister([PeriodicTask, SolarSchedule, GroupResult, TaskResult])


class TaskSelect(UnfoldAdminSelectWidget, beat.TaskSelectWidget):  # type: ignore[misc]
    pass


class ScheduleForm(beat.PeriodicTaskForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["regtask"].widget = TaskSelect()
        self.fields["task"].widget = UnfoldAdminTextInputWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(Audited, beat.PeriodicTaskAdmin, ModelAdmin):  # type: ignore[misc]
    form = ScheduleForm
    date_hierarchy = None
    list_display = ["label", "words", "enabled", "last_run_at", "next_run"]
    list_filter = ["enabled", "task"]
    search_fields = ["name", "description", "task"]
    readonly_fields = ["last_run_at", "words", "next_run"]
    fieldsets = [
        (None, {"fields": ["name", "description", "enabled"]}),
        (
            "Schedule",
            {"fields": ["crontab", "interval", "words", "next_run", "last_run_at"]},
        ),
        ("Task", {"fields": ["regtask", "task", "args", "kwargs"], "classes": ["collapse"]}),
        (
            "Execution",
            {
                "fields": ["one_off", "start_time", "expires", "expire_seconds", "queue"],
                "classes": ["collapse"],
            },
        ),
    ]

    @admin.display(description="Schedule of", ordering="name")
    def label(self, task: PeriodicTask) -> str:
        # The entry of a website is named by its id and described by its name.
        return str(task.description if task.name.startswith("website ") else task.name)

    @admin.display(description="In words")
    def words(self, task: PeriodicTask) -> str:
        return words_of(task)

    @admin.display(description="Next run", empty_value="—")
    def next_run(self, task: PeriodicTask) -> dt.datetime | None:
        return next_run_of(task)


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


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ScheduleRowAdmin, beat.IntervalScheduleAdmin):  # type: ignore[misc]
    inlines = [UsedBy]


@admin.register(TaskResult)
class TaskResultAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = ["date_done", "task_name", "periodic_task_name", "status", "worker"]
    list_filter = ["status", "task_name"]
    search_fields = ["=task_id"]
    show_full_result_count = False
    paginator = InfinitePaginator
