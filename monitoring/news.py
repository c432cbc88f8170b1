"""Changes become rows and, where the client should hear of them, events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from monitoring.changes import News, plain
from monitoring.models import Change
from notifications.events import EventDraft, publish

if TYPE_CHECKING:
    from monitoring.intake import Check


def announce(checks: Sequence[Check], clients: Mapping[uuid.UUID, uuid.UUID]) -> None:
    """Write the changes and publish their events, in the caller's transaction."""
    changes = [change for check in checks for change in _changes(check)]
    if not changes:
        return
    Change.objects.bulk_create(changes, ignore_conflicts=True)
    drafts = [
        _draft(check, news, clients[check.known.website_id])
        for check in checks
        for news in check.judgement.news
        if not news.quarantined
    ]
    publish(drafts)


def change_id(task_id: uuid.UUID, kind: str) -> uuid.UUID:
    return uuid.uuid5(task_id, kind)


def _changes(check: Check) -> Iterator[Change]:
    for news in check.judgement.news:
        yield Change(
            id=change_id(check.page.claim.id, news.kind),
            product_id=check.known.id,
            kind=news.kind,
            old=news.old,
            new=news.new,
            currency=news.currency,
            pct=news.pct,
            rule=news.rule,
            history_id=check.history_id,
            page_hash=check.page_hash,
            status=Change.Status.QUARANTINED if news.quarantined else Change.Status.CONFIRMED,
            occurred_at=check.page.fetched_at,
        )


def _draft(check: Check, news: News, client_id: uuid.UUID) -> EventDraft:
    known, state = check.known, check.judgement.state
    return EventDraft(
        client_id=client_id,
        type=f"product.{news.kind}",
        cause=check.page.claim.id,
        occurred_at=check.page.fetched_at,
        website_id=known.website_id,
        object_id=known.id,
        data={
            "object": {
                "id": str(known.id),
                "website_id": str(known.website_id),
                "name": check.item.name,
                "url": known.url,
                "sku": check.item.sku,
                "price": None if state.price is None else plain(state.price),
                "currency": state.currency,
                "stock_status": state.stock,
            },
            "previous": {
                "price": None if known.state.price is None else plain(known.state.price),
                "currency": known.state.currency,
                "stock_status": known.state.stock,
            },
            "change": {
                "id": str(change_id(check.page.claim.id, news.kind)),
                "kind": news.kind,
                "old": news.old,
                "new": news.new,
                "pct": None if news.pct is None else str(news.pct),
                "rule": news.rule,
                "history_id": str(check.history_id),
                "page_hash": check.page_hash,
            },
        },
    )
