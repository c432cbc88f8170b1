"""Nothing is known of any page, so the next run fetches and stores them all."""

from __future__ import annotations

from django.db import connection

from crawling.models import CrawlTask


def forget_pages() -> None:
    CrawlTask.objects.update(stored_page=None)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM crawling_storedpage")
        cursor.execute("DELETE FROM crawling_pagevalidator")
