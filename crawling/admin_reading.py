"""How pages are read, as the screens of tasks and domains show it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse

from common.console import block, inside_link
from crawling.models import CrawlTask, Domain

# The page belongs to whoever reads pages; here it is only linked to.
DEBUGGER = "admin:monitoring_product_debugger"


class TaskMeaning:
    @admin.display(description="What was read", empty_value="—")
    def meaning(self, task: CrawlTask) -> str | None:
        if task.stored_page_id is None:
            return None
        return inside_link(f"{reverse(DEBUGGER)}?task={task.pk}", "Open in the extraction debugger")


class DomainPlaces:
    @admin.display(description="Learned places", empty_value="None yet")
    def places(self, domain: Domain) -> str | None:
        """Where its pages show what their data says; used when the data vanishes."""
        lines = [
            f"{place['name']}: {place['selector']}"
            f" ({place['agreed']} agreed, {place['disagreed']} disagreed)"
            for place in domain.learned
        ]
        return block("\n".join(lines)) if lines else None
