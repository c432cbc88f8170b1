"""Task actions of the console, and the page of errors in groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from accounts.admin import actor_of
from common.console import do_each
from common.errors import Refused
from crawling import control, failures
from crawling.models import CrawlError, CrawlTask

MOST_GROUPS = 200


class TaskActions:
    """The controls, for chosen rows of the list."""

    actions = [
        "pause",
        "resume",
        "cancel",
        "restart_from_fetch",
        "restart_from_parse",
        "most_urgent",
        "least_urgent",
    ]

    def has_steer_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("crawling.change_crawltask")

    @admin.action(description="Pause", permissions=["steer"])
    def pause(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.pause, "paused")

    @admin.action(description="Resume", permissions=["steer"])
    def resume(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.resume, "resumed")

    @admin.action(description="Cancel", permissions=["steer"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.cancel, "cancelled")

    @admin.action(description="Restart from fetch", permissions=["steer"])
    def restart_from_fetch(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.restart, "restarted")

    @admin.action(description="Restart from the stored page", permissions=["steer"])
    def restart_from_parse(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.restart, "restarted", from_="parse")

    @admin.action(description="Priority 1: most urgent", permissions=["steer"])
    def most_urgent(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.set_priority, "made most urgent", priority=1)

    @admin.action(description="Priority 10: least urgent", permissions=["steer"])
    def least_urgent(self, request: HttpRequest, chosen: QuerySet[CrawlTask]) -> None:
        _each(request, chosen, control.set_priority, "made least urgent", priority=10)


def _each(
    request: HttpRequest,
    chosen: QuerySet[CrawlTask],
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
        context = site.each_context(request) | {
            "title": "Errors in groups",
            "columns": ("Last", "Host", "Category", "Message", "Count", "Dead letters", ""),
            "groups": failures.error_groups(CrawlError.objects.all())[:MOST_GROUPS],
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
