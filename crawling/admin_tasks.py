"""Task actions of the console, and the page of errors in groups."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from unfold.decorators import action as unfold_action

from accounts.admin import actor_of
from common.console import Buttons, do_each
from common.errors import Refused
from crawling import control, failures
from crawling.admin_plots import errors_of_a_day
from crawling.control import Order
from crawling.models import CrawlTask

MOST_GROUPS = 100
SHOWN = dt.timedelta(days=7)
MOST_ERRORS = 5_000


class TaskActions(Buttons):
    """The controls, for chosen rows of the list and on the page of one."""

    actions = [
        "pause",
        "resume",
        "cancel",
        "restart_from_fetch",
        "restart_from_parse",
        "most_urgent",
        "usual_priority",
        "least_urgent",
    ]
    actions_submit_line = [
        "pause_this",
        "resume_this",
        "cancel_this",
        "fetch_this",
        "parse_this",
        "hurry_this",
    ]

    def has_steer_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("crawling.change_crawltask")

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what its state allows."""
        task = self.get_object(request, str(object_id))  # type: ignore[attr-defined]
        found: list[Any] = super().get_actions_submit_line(request, object_id)  # type: ignore[misc]
        possible = _possible(task) if task is not None else set()
        return [button for button in found if button.method.__name__ in possible]

    @admin.action(description="Pause", permissions=["steer"])
    def pause(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.pause, "paused")

    @admin.action(description="Resume", permissions=["steer"])
    def resume(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.resume, "resumed")

    @admin.action(description="Cancel", permissions=["steer"])
    def cancel(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.cancel, "cancelled")

    @admin.action(description="Restart from fetch", permissions=["steer"])
    def restart_from_fetch(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.restart, "restarted")

    @admin.action(description="Restart from the stored page", permissions=["steer"])
    def restart_from_parse(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.restart, "restarted", from_="parse")

    @admin.action(description="Priority 1: most urgent", permissions=["steer"])
    def most_urgent(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.set_priority, "made most urgent", priority=1)

    @admin.action(description="Priority 5: as usual", permissions=["steer"])
    def usual_priority(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.set_priority, "given the usual priority", priority=5)

    @admin.action(description="Priority 10: least urgent", permissions=["steer"])
    def least_urgent(self, request: HttpRequest, chosen: Any) -> None:
        _each(request, chosen, control.set_priority, "made least urgent", priority=10)

    @unfold_action(description="Pause", permissions=["steer"], icon="pause")  # type: ignore[untyped-decorator]
    def pause_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.pause(request, [task])

    @unfold_action(description="Resume", permissions=["steer"], icon="play_arrow")  # type: ignore[untyped-decorator]
    def resume_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.resume(request, [task])

    @unfold_action(description="Cancel", permissions=["steer"], icon="close")  # type: ignore[untyped-decorator]
    def cancel_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.cancel(request, [task])

    @unfold_action(description="Fetch again", permissions=["steer"], icon="refresh")  # type: ignore[untyped-decorator]
    def fetch_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.restart_from_fetch(request, [task])

    @unfold_action(description="Read the stored page again", permissions=["steer"], icon="article")  # type: ignore[untyped-decorator]
    def parse_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.restart_from_parse(request, [task])

    @unfold_action(description="Most urgent", permissions=["steer"], icon="priority_high")  # type: ignore[untyped-decorator]
    def hurry_this(self, request: HttpRequest, task: CrawlTask) -> None:
        self.most_urgent(request, [task])


# What each button asks for; the control knows from which states that goes.
ORDERS = {
    "pause_this": Order(action="pause"),
    "resume_this": Order(action="resume"),
    "cancel_this": Order(action="cancel"),
    "fetch_this": Order(action="restart"),
    "parse_this": Order(action="restart", from_="parse"),
    "hurry_this": Order(action="priority", priority=1),
}


def _possible(task: CrawlTask) -> set[str]:
    names = {name for name, order in ORDERS.items() if task.status in order.allowed}
    if task.stored_page_id is None:
        names.discard("parse_this")
    if task.priority == 1:
        names.discard("hurry_this")
    return names


def _each(
    request: HttpRequest,
    chosen: Iterable[CrawlTask],
    act: Callable[..., Any],
    done: str,
    **details: Any,
) -> None:
    actor = actor_of(request)
    do_each(request, chosen, lambda task: act(task, actor=actor, **details), done)


class GroupForm(forms.Form):
    fingerprint = forms.CharField(max_length=64)


class ErrorGroups:
    """A page beside the list of single errors: groups, each with a button to retry it."""

    def get_urls(self) -> list[Any]:
        site: Any = self.admin_site  # type: ignore[attr-defined]
        own = path("groups/", site.admin_view(self.show_groups), name="crawling_crawlerror_groups")
        return [own, *super().get_urls()]  # type: ignore[misc]

    def show_groups(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        if request.method == "POST":
            return self._retry(request)
        site: Any = self.admin_site  # type: ignore[attr-defined]
        now = timezone.now()
        plot, kinds = errors_of_a_day(now)
        groups = failures.error_groups(failures.newest(MOST_ERRORS, since=now - SHOWN))
        shown = list(groups[:MOST_GROUPS])
        pages = failures.stored_pages_of(group.sample_task for group in shown)
        context = site.each_context(request) | {
            "title": "Errors in groups",
            "plot": plot,
            "kinds": kinds,
            "rows": [(group, pages.get(group.sample_task)) for group in shown],
            "days": SHOWN.days,
            "most": MOST_ERRORS,
            "may_retry": _may_retry(request),
        }
        return TemplateResponse(request, "admin/crawling/error_groups.html", context)

    def _retry(self, request: HttpRequest) -> HttpResponse:
        form = GroupForm(request.POST)
        if not _may_retry(request) or not form.is_valid():
            raise PermissionDenied
        try:
            outcome = failures.retry_group(
                form.cleaned_data["fingerprint"], actor=actor_of(request)
            )
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{len(outcome.ids)} dead letters are tried again.")
        return HttpResponseRedirect(reverse("admin:crawling_crawlerror_groups"))


def _may_retry(request: HttpRequest) -> bool:
    return request.user.has_perm("crawling.change_crawltask")
