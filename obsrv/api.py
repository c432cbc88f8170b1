"""What lives under ``/api/v1``: the account, then whatever the apps bring."""

from __future__ import annotations

import importlib.util

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import (
    SpectacularAPIView,
    SpectacularRedocView,
    SpectacularSwaggerSplitView,
)

APPS = ("accounts", "crawling", "monitoring", "notifications", "search")


def _has_api(app: str) -> bool:
    return (
        importlib.util.find_spec(f"{app}.api") is not None
        and importlib.util.find_spec(f"{app}.api.urls") is not None
    )


v1: list[URLPattern | URLResolver] = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    *(path("", include(f"{app}.api.urls")) for app in APPS if _has_api(app)),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/", include(v1)),
    # Scripts in files of their own: the pages need no inline script.
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path(
        "redoc",
        SpectacularRedocView.as_view(url_name="schema", template_name="api/redoc.html"),
        name="redoc",
    ),
]
