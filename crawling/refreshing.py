"""robots.txt on an operator's word: asked for at once where nobody holds the domain."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.http import Egress
from common.ids import uuid7
from common.urls import origin_of
from crawling import leases, ledger, robots
from crawling.ledger import Answered, Ledger
from crawling.models import Domain
from crawling.pacing import Pace, Turn
from crawling.robots import Asked

# Longest wait for the host's next slot; past it the next visit asks.
PATIENCE_SECONDS = 3.0


def refresh_robots(domain: Domain, *, actor: Actor) -> bool:
    """Whether it was asked for now; if not, the next visit to the domain asks."""
    _mark_due(domain, actor)
    worker = f"refresh:{uuid7().hex}"
    held = leases.lease_domain(worker, domain.pk)
    if held is None:
        return False
    pace = Pace.of(held)
    try:
        return _look(held, pace)
    finally:
        leases.release_domain(worker, held.pk, pace.next_allowed_at)


@transaction.atomic
def _mark_due(domain: Domain, actor: Actor) -> None:
    locked = Domain.objects.select_for_update(no_key=True).get(pk=domain.pk)
    # A host that rested only for its robots.txt may be asked for it.
    if locked.robots_failures and locked.next_allowed_at == locked.robots_due_at:
        locked.next_allowed_at = None
    locked.robots_due_at = timezone.now()
    locked.save(update_fields=["robots_due_at", "next_allowed_at"])
    audit.record(actor, "refresh_robots", locked)


def _look(domain: Domain, pace: Pace) -> bool:
    kept = robots.kept_of(domain, origin_of(domain.base_url))
    turn, asked = asyncio.run(_ask(domain, kept.url, pace))
    if turn is None:
        return False
    notes = Ledger()
    answered = Answered(asked.status, asked.bytes, asked.response_ms, asked.error_category)
    notes.note(domain, kept.url, turn, answered)
    columns = robots.columns_of(domain, robots.keep(kept, asked)) | pace.columns()
    with transaction.atomic():
        Domain.objects.filter(pk=domain.pk).update(**columns)
        ledger.write(notes.take())
    return True


async def _ask(domain: Domain, url: str, pace: Pace) -> tuple[Turn | None, Asked]:
    turn = await pace.turn(time.monotonic() + PATIENCE_SECONDS)
    if turn is None:
        return None, Asked()
    async with Egress() as egress:
        name = domain.user_agent or settings.CRAWL_USER_AGENT
        return turn, await robots.ask(egress, url, user_agent=name)
