from __future__ import annotations

import uuid
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from common.console import ReadOnly, block, inside_link
from common.console_csv import CsvList
from common.console_search import FoundById
from crawling import pages
from crawling.downloads import download
from crawling.models import StoredPage
from crawling.pages import PageLost

DOWNLOAD = "crawling_storedpage_download"
SOURCE_CHARS = 200_000


@admin.register(StoredPage)
class StoredPageAdmin(CsvList, FoundById, ReadOnly, ModelAdmin):  # type: ignore[misc]
    csv_columns = [
        "content_hash",
        "content_type",
        "charset",
        "size",
        "compressed_size",
        "first_seen_at",
        "last_seen_at",
    ]
    list_display = ["content_hash", "kind", "size", "compressed_size", "first_seen_at", "seen"]
    text_fields = ["content_hash"]
    search_help_text = "The hash of a page."
    show_full_result_count = False
    paginator = InfinitePaginator
    fields = [
        "content_hash",
        "storage_key",
        "size",
        "compressed_size",
        "content_type",
        "charset",
        "first_seen_at",
        "last_seen_at",
        "file",
        "source",
    ]

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.download)
        return [path("<uuid:pk>/download", view, name=DOWNLOAD), *super().get_urls()]

    @method_decorator(require_safe)
    def download(self, request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return download(get_object_or_404(StoredPage, pk=pk))

    @admin.display(description="Type")
    def kind(self, page: StoredPage) -> str:
        return " ".join(filter(None, [page.content_type, page.charset]))

    @admin.display(description="Last seen", ordering="last_seen_at")
    def seen(self, page: StoredPage) -> Any:
        return page.last_seen_at

    @admin.display(description="Page")
    def file(self, page: StoredPage) -> str:
        return inside_link(reverse(f"admin:{DOWNLOAD}", args=[page.pk]), "Download")

    @admin.display(description="Source", empty_value="—")
    def source(self, page: StoredPage) -> str | None:
        """As text: a foreign page is never shown as one of ours."""
        try:
            body = pages.read_page(page)
        except PageLost:
            return "The file of this page is gone; it is stored again when it is seen again."
        return block(_text(body, page.charset)[:SOURCE_CHARS])


def _text(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")
