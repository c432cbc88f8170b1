"""What the crawler knows of pages, taken from it before a run."""

from __future__ import annotations

from django.db import connection

from crawling.models import CrawlTask


def forget_pages() -> None:
    """Nothing is known of any page: the next run fetches, reads and stores them all."""
    CrawlTask.objects.update(stored_page=None)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM crawling_storedpage")
        cursor.execute("DELETE FROM crawling_pagevalidator")


def forget_conditions() -> None:
    """As if the shop gave no ETag: pages come whole, and are known again by their bytes."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE crawling_pagevalidator SET etag = '', last_modified = ''")
