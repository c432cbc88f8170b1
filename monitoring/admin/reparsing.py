"""A page that shows what reading stored pages again would change, with a button to do it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse

from accounts.admin import actor_of
from common.errors import Refused
from crawling.models import CrawlJob
from monitoring.reparsing import Comparison

SHOWN = 50


@dataclass(frozen=True)
class Road:
    compare: Callable[..., Comparison]
    run: Callable[..., CrawlJob]


class Reparsed:
    """For the screens of what has stored pages; ``reparse_road`` says how."""

    reparse_road: Road

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.show_reparse)  # type: ignore[attr-defined]
        own = path("<uuid:pk>/reparse/", view, name=self._reparse_name)
        return [own, *super().get_urls()]  # type: ignore[misc]

    @property
    def _reparse_name(self) -> str:
        options = self.model._meta  # type: ignore[attr-defined]
        return f"{options.app_label}_{options.model_name}_reparse"

    def reparse_url(self, pk: uuid.UUID) -> str:
        return reverse(f"admin:{self._reparse_name}", args=[pk])

    def show_reparse(self, request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
        may_run = request.user.has_perm("monitoring.change_product")
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        about = get_object_or_404(self.model, pk=pk)  # type: ignore[attr-defined]
        if request.method == "POST":
            if not may_run:
                raise PermissionDenied
            return self._run(request, about)
        context = self.admin_site.each_context(request) | {  # type: ignore[attr-defined]
            "title": f"Read again: {about}",
            "about": about,
            "compared": self.reparse_road.compare(about, limit=SHOWN),
            "may_run": may_run,
        }
        return TemplateResponse(request, "admin/monitoring/reparse.html", context)

    def _run(self, request: HttpRequest, about: Any) -> HttpResponse:
        try:
            job = self.reparse_road.run(about, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, refused.detail)
            return HttpResponseRedirect(request.get_full_path())
        messages.success(request, f"{job.total} stored pages are read again.")
        return HttpResponseRedirect(reverse("admin:crawling_crawljob_change", args=[job.pk]))
