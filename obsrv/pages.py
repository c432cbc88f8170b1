"""Public pages that answers and requests of ours point to: no login, nothing from outside."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.drf import problems
from crawling.robots import agent


@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """Where the ``type`` of every problem points."""
    return render(request, "errors.html", {"codes": problems.CODES})


@require_safe
def bot(request: HttpRequest) -> HttpResponse:
    """Where the crawler's name points: for those who find it in their logs."""
    facts = {
        "agent": agent(),
        "user_agent": settings.CRAWL_USER_AGENT,
        "public_url": settings.PUBLIC_URL,
        "delay": settings.CRAWL_DEFAULT_DELAY_SECONDS,
        "concurrency": settings.CRAWL_DEFAULT_CONCURRENCY,
    }
    return render(request, "bot.html", facts)
