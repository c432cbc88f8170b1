"""The System page: health, queues, partitions, storage, and retention with a look first."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_celery_beat.models import PeriodicTask

from accounts.auditing import actor_of
from common import plots
from common.errors import Refused
from common.plots import Series
from monitoring import retention
from obsrv import schedule_control, system
from obsrv.schedules import RETENTION

VIEW, RUN = "accounts.view_system", "django_celery_beat.change_periodictask"
MEGABYTE = 1024 * 1024


def require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    require(request, VIEW)
    partitions = system.partitions()
    context = admin.site.each_context(request) | {
        "title": "System",
        "checks": system.checks(),
        "partitions": partitions,
        "storage": system.storage(),
        "versions": system.versions(),
        "plots": _plots(partitions),
        "may_run": request.user.has_perm(RUN),
    }
    return TemplateResponse(request, "admin/system/page.html", context)


@require_safe
def show_queues(request: HttpRequest) -> HttpResponse:
    """A part of the page that takes a second: asked for by the page."""
    require(request, VIEW)
    return TemplateResponse(request, "admin/system/queues.html", {"queues": system.queue_states()})


@require_http_methods(["GET", "POST"])
def show_retention(request: HttpRequest) -> HttpResponse:
    """First what would go; then, confirmed, a worker lets it go."""
    require(request, VIEW)
    if request.method == "POST":
        require(request, RUN)
        return _run_retention(request)
    context = admin.site.each_context(request) | {
        "title": "Retention",
        "steps": retention.apply(dry_run=True),
        "may_run": request.user.has_perm(RUN),
    }
    return TemplateResponse(request, "admin/system/retention.html", context)


def _run_retention(request: HttpRequest) -> HttpResponse:
    task = PeriodicTask.objects.filter(name=RETENTION).first()
    if task is None:
        messages.error(request, "Its schedule is missing: run manage.py ensure_schedules.")
        return HttpResponseRedirect(request.path)
    try:
        schedule_control.run_now(task, actor=actor_of(request))
    except Refused as refused:
        messages.error(request, refused.detail)
        return HttpResponseRedirect(request.path)
    messages.success(request, "A worker has begun; what it removed will stand in this list.")
    return HttpResponseRedirect(reverse("admin:django_celery_results_taskresult_changelist"))


def _plots(partitions: list[system.Partition]) -> list[Any]:
    months = [one for one in partitions if one.month is not None]
    labels = [f"{one.month.year}-{one.month.month:02d}" for one in months if one.month]
    rows = Series("rows", "info", [one.rows for one in months])
    disk = Series("disk", "quiet", [round(one.size / MEGABYTE, 1) for one in months])
    return [
        plots.bars("History rows by month", labels, [rows], empty="No history yet."),
        plots.bars("Its disk by month", labels, [disk], unit="MB", empty="No history yet."),
    ]


def urls() -> list[Any]:
    """Below /admin/, before Django's own."""
    pages = (
        ("", show, "system"),
        ("queues/", show_queues, "system_queues"),
        ("retention/", show_retention, "system_retention"),
    )
    return [
        path(f"admin/system/{place}", admin.site.admin_view(view), name=name)
        for place, view, name in pages
    ]
