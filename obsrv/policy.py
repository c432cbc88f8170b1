"""What a page of the console may load and run: this host's files, and no script in the page."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# The theme reads the conditions of its widgets from attributes (Alpine: unsafe-eval) and writes
# its colours into the page (style). Scripts in the page, of any origin, do not run.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class ConsolePolicyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path_info.startswith("/admin/"):
            # A download has a stricter one of its own.
            response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
