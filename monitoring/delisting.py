"""A product that somebody knows to be gone: no second look is needed, and none is made."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import InvalidState
from common.ids import uuid7
from crawling.frontier import hold_websites
from monitoring.changes import plain
from monitoring.facts import product_object
from monitoring.models import Change, Product, Website
from notifications.events import EventDraft, publish

BY_HAND = "delisted by hand"


@transaction.atomic
def delist(product: Product, *, actor: Actor) -> Change:
    """Gone, and no longer looked at; the client is told. Resuming it looks again."""
    hold_websites([product.website_id])
    website = Website.objects.select_for_update(of=("self",), no_key=True).get(
        pk=product.website_id
    )
    locked = Product.objects.select_for_update(of=("self",), no_key=True).get(pk=product.pk)
    if locked.approval != Product.Approval.APPROVED:
        raise InvalidState(f"A product that is {locked.approval} is not watched: reject it.")
    if locked.delisted_at is not None and not locked.is_active:
        raise InvalidState("This product is delisted already.")
    change = _mark(locked)
    audit.record(actor, "delist", locked, client_id=website.client_id)
    publish([_event(website, locked, change)])
    return change


def _mark(product: Product) -> Change:
    now = timezone.now()
    product.delisted_at = product.missing_at = product.last_changed_at = now
    product.is_active = False
    names = ["delisted_at", "missing_at", "last_changed_at", "is_active", "updated_at"]
    product.save(update_fields=names)
    return Change.objects.create(
        id=uuid7(),
        product=product,
        kind=Change.Kind.DELISTED,
        old="listed",
        new="delisted",
        rule=BY_HAND,
        page_hash=product.page_hash,
        occurred_at=now,
    )


def _event(website: Website, product: Product, change: Change) -> EventDraft:
    price = product.current_price
    previous: dict[str, Any] = {
        "price": None if price is None else plain(price),
        "currency": product.current_currency,
        "stock_status": product.current_stock_status,
    }
    told = {
        "id": str(change.pk),
        "kind": change.kind,
        "old": change.old,
        "new": change.new,
        "pct": None,
        "rule": change.rule,
        "alert_rule_id": None,
        "history_id": None,
        "page_hash": change.page_hash,
    }
    return EventDraft(
        client_id=website.client_id,
        type="product.delisted",
        cause=change.pk,
        occurred_at=change.occurred_at,
        website_id=website.pk,
        object_id=product.pk,
        data={"object": product_object(product), "previous": previous, "change": told},
    )
