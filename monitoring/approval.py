"""Approve or reject candidates; one function for console, API and rules."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import InvalidState, LimitReached
from crawling.frontier import hold_websites
from monitoring import runs, schedules
from monitoring.facts import product_object
from monitoring.models import Product, Website
from notifications.events import EventDraft, publish

Approval = Product.Approval


@transaction.atomic
def approve(product_ids: Sequence[uuid.UUID], *, actor: Actor) -> list[Product]:
    """Watch these products from now on; answers those that were not watched before.
    Their baseline is crawled at once, and the website becomes active."""
    approved: list[Product] = []
    for website in lock_websites_of(product_ids):
        fresh = _lock(website, product_ids, (Approval.PENDING, Approval.REJECTED))
        if not fresh:
            continue
        _respect_quota(website, len(fresh))
        _set(website, fresh, Approval.APPROVED, actor, "approve")
        _activate(website)
        job = runs.start_baseline(website, fresh, triggered_by="manual")
        publish([_approved_event(website, product, job.pk) for product in fresh])
        approved += fresh
    return approved


@transaction.atomic
def reject(product_ids: Sequence[uuid.UUID], *, actor: Actor) -> list[Product]:
    """Not wanted: stays rejected when it is discovered again."""
    rejected: list[Product] = []
    for website in lock_websites_of(product_ids):
        fresh = _lock(website, product_ids, (Approval.PENDING, Approval.APPROVED))
        _set(website, fresh, Approval.REJECTED, actor, "reject")
        recount(website)
        rejected += fresh
    return rejected


def approve_one(product: Product, *, actor: Actor) -> Product:
    if product.approval == Approval.APPROVED:
        raise InvalidState(
            "This product is approved already; only pending or rejected ones can be."
        )
    approve([product.pk], actor=actor)
    product.refresh_from_db()
    return product


def reject_one(product: Product, *, actor: Actor) -> Product:
    if product.approval == Approval.REJECTED:
        raise InvalidState(
            "This product is rejected already; only pending or approved ones can be."
        )
    reject([product.pk], actor=actor)
    product.refresh_from_db()
    return product


def lock_websites_of(product_ids: Sequence[uuid.UUID]) -> list[Website]:
    """Locked in id order, before their products."""
    ids = set(Product.objects.filter(id__in=product_ids).values_list("website_id", flat=True))
    hold_websites(ids)
    rows = Website.objects.filter(id__in=ids).order_by("id")
    return list(
        rows.select_related("client", "periodic_task").select_for_update(of=("self",), no_key=True)
    )


def _lock(
    website: Website, product_ids: Sequence[uuid.UUID], approvals: Sequence[str]
) -> list[Product]:
    rows = website.products.filter(id__in=product_ids, approval__in=approvals).order_by("id")
    return list(rows.select_for_update(no_key=True))


def _set(website: Website, products: Sequence[Product], to: str, actor: Actor, verb: str) -> None:
    audit.record_many(actor, verb, products, client_id=website.client_id, after={"approval": to})
    for product in products:
        product.approval = to
    Product.objects.filter(id__in=[p.pk for p in products]).update(
        approval=to, updated_at=timezone.now()
    )


def _respect_quota(website: Website, wanted: int) -> None:
    room = room_of(website)
    if wanted > room:
        limit = website.client.max_products_per_website
        raise LimitReached(
            f"This website may have {limit} approved products (max_products_per_website), "
            f"{room} more than now: reject some or ask the operator for more."
        )


def room_of(website: Website) -> int:
    """How many more products may be approved."""
    approved = website.products.filter(approval=Approval.APPROVED).count()
    return max(0, website.client.max_products_per_website - approved)


def _activate(website: Website) -> None:
    recount(website)
    if website.status == Website.Status.PENDING_APPROVAL:
        website.status = Website.Status.ACTIVE
        website.save(update_fields=["status", "updated_at"])
        schedules.switch(website, on=True)
        publish([runs.website_event(website, "website.activated", cause=website.pk)])


def recount(website: Website) -> None:
    count = website.products.filter(approval=Approval.APPROVED).count()
    website.approved_product_count = count
    Website.objects.filter(pk=website.pk).update(
        approved_product_count=count, updated_at=timezone.now()
    )


def _approved_event(website: Website, product: Product, run: uuid.UUID) -> EventDraft:
    return EventDraft(
        client_id=website.client_id,
        type="product.approved",
        cause=uuid.uuid5(run, str(product.pk)),
        occurred_at=timezone.now(),
        website_id=website.pk,
        object_id=product.pk,
        data={"object": product_object(product)},
    )
