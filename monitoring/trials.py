"""The verdict on a shop: what a test crawl of its first seed page shows."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from crawling.fetching import Page
from crawling.models import CrawlTask
from extraction.feeds import detect_platform
from extraction.items import NoProduct, ProductItem
from extraction.scripted import looks_script_built

Verdict = dict[str, Any]


def verdict_on(page: Page, item: ProductItem | NoProduct, body: bytes, links: int) -> Verdict:
    found = isinstance(item, ProductItem)
    needs_script = not found and looks_script_built(body)
    return {
        **_asked(page.claim.url, page.url, page.status, page.fetched_at),
        "address": "allowed",
        "robots": "allowed",
        "product_found": found,
        "method": str(item.method) if isinstance(item, ProductItem) else "",
        "reason": item.reason,
        "needs_javascript": needs_script,
        "platform": detect_platform(body, page.headers),
        "links": links,
        "error": "",
    }


def verdict_on_failure(page: Page) -> Verdict:
    assert page.failure is not None
    category = page.failure.category
    return {
        **_asked(page.claim.url, page.url, page.status, page.fetched_at),
        # The door refuses some addresses only once they are resolved.
        "address": "refused" if _is_address(page) else "allowed",
        "robots": "forbidden" if category == CrawlTask.Category.ROBOTS else "allowed",
        "product_found": False,
        "method": "",
        "reason": "",
        "needs_javascript": None,
        "platform": "",
        "links": 0,
        "error": page.failure.message,
    }


def _is_address(page: Page) -> bool:
    assert page.failure is not None
    return page.status is None and page.failure.category == CrawlTask.Category.BLOCKED


def _asked(url: str, final: str, status: int | None, at: dt.datetime) -> Verdict:
    return {
        "url": url,
        "final_url": final or url,
        "http_status": status,
        "checked_at": at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z"),
    }


def summed_up(verdict: Verdict | None, methods: dict[str, int]) -> Verdict | None:
    """The verdict once discovery is over: seed pages are seldom products themselves, so
    what was read elsewhere in the shop counts as well."""
    if verdict is None:
        return None
    best = max(methods, key=lambda name: methods[name], default="")
    found = bool(methods) or bool(verdict["product_found"])
    return {
        **verdict,
        "product_found": found,
        "method": verdict["method"] or best,
        "methods": methods,
        "needs_javascript": False if methods else verdict["needs_javascript"],
        "finished_at": timezone.now().isoformat().replace("+00:00", "Z"),
    }
