from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from common.console import BAD, GOOD, INFO, WARN, ReadOnly, badge, outside_link, short_url
from monitoring.models import FoundUrl, ParserHealth

STATE_COLOURS = {
    "product": GOOD,
    "listed": GOOD,
    "known": GOOD,
    "duplicate": INFO,
    "read": INFO,
    "no_product": INFO,
    "failed": BAD,
    "robots": WARN,
    "banned": WARN,
    "over_limit": WARN,
}


@admin.register(FoundUrl)
class FoundUrlAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Why a page was read, or not."""

    list_display = ["page", "website", "verdict", "why", "source", "likeness", "last_seen_at"]
    list_filter = ["state", "source", "website"]
    list_select_related = ["website"]
    search_fields = ["url"]
    ordering = ["-last_seen_at", "-id"]
    show_full_result_count = False
    paginator = InfinitePaginator
    empty_text = "Nothing found yet. Discovery of a website fills this list."
    fields = [
        "address",
        "website",
        "verdict",
        "why",
        "source",
        "depth",
        "likeness",
        "lastmod",
        "first_seen_at",
        "last_seen_at",
        "job_id",
    ]

    @admin.display(description="URL", ordering="url")
    def page(self, found: FoundUrl) -> str:
        return short_url(found.url)

    @admin.display(description="URL")
    def address(self, found: FoundUrl) -> str:
        return outside_link(found.url)

    @badge("State", STATE_COLOURS, ordering="state")
    def verdict(self, found: FoundUrl) -> str:
        return found.get_state_display()

    @admin.display(description="Why")
    def why(self, found: FoundUrl) -> str:
        return found.reason

    @admin.display(description="Score", ordering="score")
    def likeness(self, found: FoundUrl) -> str:
        return f"{min(found.score, 1):.2f}"


@admin.register(ParserHealth)
class ParserHealthAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """How much of each host's pages can be read."""

    list_display = ["host", "last", "usual", "dropped_at", "updated_at"]
    list_filter = [("dropped_at", admin.EmptyFieldListFilter)]
    search_fields = ["host"]
    ordering = ["last_pct", "host"]
    empty_text = "No run of five pages or more yet."

    @admin.display(description="Last run", ordering="last_pct")
    def last(self, health: ParserHealth) -> str:
        return f"{health.last_pct:.0f} %"

    @admin.display(description="Usually", ordering="usual_pct")
    def usual(self, health: ParserHealth) -> str:
        return f"{health.usual_pct:.0f} %"
