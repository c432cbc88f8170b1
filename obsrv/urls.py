from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from obsrv import admin_system, health, pages

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("favicon.ico", RedirectView.as_view(url="/static/obsrv/icon.svg")),
    *admin_system.urls(),
    path("admin/", admin.site.urls),
    path("api/", include("obsrv.api")),
    path("docs/errors", pages.errors, name="errors"),
    path("bot", pages.bot, name="bot"),
    path("health", health.live, name="health"),
    path("health/ready", health.ready, name="health-ready"),
]
