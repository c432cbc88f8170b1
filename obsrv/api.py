"""What lives under ``/api/v1``: the account, then whatever the apps bring."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import (
    SpectacularAPIView,
    SpectacularRedocView,
    SpectacularSwaggerSplitView,
)

APPS = ("accounts", "crawling", "monitoring", "notifications", "search")
# Both pages draw with styles of their own making; Redoc searches in a worker.
DOCS_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def _has_api(app: str) -> bool:
    return (
        importlib.util.find_spec(f"{app}.api") is not None
        and importlib.util.find_spec(f"{app}.api.urls") is not None
    )


def _kept_inside(view: Callable[..., Any]) -> Callable[..., Any]:
    """The page may ask this host only, whatever its scripts would like to load."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = DOCS_POLICY
        return response

    return wrapped


v1: list[URLPattern | URLResolver] = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    *(path("", include(f"{app}.api.urls")) for app in APPS if _has_api(app)),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/", include(v1)),
    # Scripts in files of their own: the pages need no inline script.
    path("docs", _kept_inside(SpectacularSwaggerSplitView.as_view(url_name="schema")), name="docs"),
    path(
        "redoc",
        _kept_inside(
            SpectacularRedocView.as_view(url_name="schema", template_name="api/redoc.html")
        ),
        name="redoc",
    ),
]
