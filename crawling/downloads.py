"""A stored page as a file to save: a foreign page is never shown as one of ours."""

from __future__ import annotations

from django.http import Http404, HttpResponse

from crawling import pages
from crawling.models import StoredPage
from crawling.pages import PageLost


def download(stored: StoredPage) -> HttpResponse:
    try:
        body = pages.read_page(stored)
    except PageLost:
        raise Http404 from None
    return HttpResponse(
        body,
        content_type="text/plain; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{stored.content_hash}.txt"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )
