"""What every request carries: an id that follows it into logs, jobs, events and deliveries."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

from common.ids import uuid7


def current_request_id() -> str:
    """The id of the request being served, or empty outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


class RequestMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = uuid7().hex
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response
