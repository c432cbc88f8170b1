"""What every request carries: an id that follows it into logs, jobs, events and deliveries.

Under ``/api`` and ``/health`` every failure is a problem document, also where Django or its
middleware would have answered in HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from common.ids import uuid7

INCOMING_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MACHINE_PATHS = re.compile(r"/(api|health)(/|$)")


def current_request_id() -> str:
    """The id of the request being served, or empty outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def _id_of(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    return given if INCOMING_ID.fullmatch(given) else uuid7().hex


def _for_machines(request: HttpRequest) -> bool:
    return MACHINE_PATHS.match(request.path_info) is not None


def _read_unannounced_body(request: HttpRequest) -> int:
    """A chunked body has no length, and DRF takes that for none: read it here, up to the limit."""
    body = request.read(settings.API_BODY_MAX_BYTES + 1)
    request._body = body
    request.META["CONTENT_LENGTH"] = str(len(body))
    return len(body)


def _body_size(request: HttpRequest) -> int:
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced.isdigit():
        return int(announced)
    if request.headers.get("Transfer-Encoding"):
        return _read_unannounced_body(request)
    return 0


class RequestMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        # Job modules import this file for the id alone: they must not load DRF with it.
        from common.drf import problems

        self.get_response = get_response
        self.problems = problems

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = _id_of(request)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self._answer(request)
        response["X-Request-ID"] = request_id
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if not _for_machines(request):
            return self.get_response(request)
        if _body_size(request) > settings.API_BODY_MAX_BYTES:
            return self.problems.answer(self.problems.too_large())
        response = self.get_response(request)
        if response.status_code >= 400 and "json" not in response.get("Content-Type", ""):
            return self._as_problem(response)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Views outside DRF; DRF views have answered already."""
        return self.problems.answer(self.problems.of(error)) if _for_machines(request) else None

    def _as_problem(self, response: HttpResponse) -> HttpResponse:
        problem = self.problems.answer(self.problems.of_status(response.status_code))
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response:
                problem[name] = response[name]
        return problem
