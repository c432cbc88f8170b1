"""Single products: changed, looked at now, removed, put aside; one function per wish."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import InvalidState, Refused
from crawling import frontier, jobs
from crawling.frontier import Target, hold_websites
from crawling.models import CrawlJob
from monitoring import delisting, describing, history
from monitoring.approval import recount
from monitoring.models import Change, Product, Website
from monitoring.reviews import Outcome

ACTIONS = ("pause", "resume", "crawl", "delist", "delete")
MAX_ITEMS = 500


@transaction.atomic
def update_product(product: Product, *, actor: Actor, **values: Any) -> Product:
    locked = Product.objects.select_for_update(of=("self",)).get(pk=product.pk)
    before = {name: getattr(locked, name) for name in values}
    for name, value in values.items():
        setattr(locked, name, value)
    said = {name for name in describing.FIXABLE if name in values}
    if said:
        kept = [name for name in locked.fixed_fields if name not in said]
        locked.fixed_fields = sorted([*kept, *(name for name in said if values[name])])
        # So that the next page that is read fills what was emptied.
        locked.facts_hash = ""
    locked.save(update_fields=[*values, "fixed_fields", "facts_hash", "updated_at"])
    client_id = Website.objects.values_list("client_id", flat=True).get(pk=locked.website_id)
    audit.record(actor, "update", locked, client_id=client_id, before=before, after=values)
    return locked


@transaction.atomic
def delete_product(product: Product, *, actor: Actor) -> None:
    """With its history. Discovery may find it again: reject it to keep it away."""
    website = _lock_website(product.website_id)
    audit.record(actor, "delete", product, client_id=website.client_id)
    history.delete_product_history(product.pk)
    Product.objects.filter(pk=product.pk).delete()
    recount(website)


@transaction.atomic
def crawl_product(product: Product, *, actor: Actor) -> CrawlJob:
    """One look at one product, beside the schedule."""
    if product.approval != Product.Approval.APPROVED:
        raise InvalidState(f"A product that is {product.approval} is not watched: approve it.")
    website = _lock_website(product.website_id)
    job = frontier.open_job(
        kind=CrawlJob.Kind.URLS,
        triggered_by=CrawlJob.Trigger.MANUAL,
        client_id=website.client_id,
        website_id=website.pk,
        priority=2,
    )
    assert job is not None
    target = Target(url=product.original_url, object_id=product.pk)
    frontier.submit(job, purpose="product", targets=[target])
    audit.record(
        actor, "crawl", product, client_id=website.client_id, after={"job_id": str(job.pk)}
    )
    return jobs.close_empty(job) if job.total == 0 else job


def act_on_many(
    action: str, ids: Iterable[uuid.UUID], visible: Any, *, actor: Actor, dry_run: bool
) -> list[Outcome]:
    """One outcome each; one that is refused does not keep the others from it."""
    wanted = list(dict.fromkeys(ids))
    found: dict[uuid.UUID, Product] = visible.in_bulk(wanted)
    return [_act(action, pk, found.get(pk), actor, dry_run=dry_run) for pk in wanted]


def _act(
    action: str, pk: uuid.UUID, product: Product | None, actor: Actor, *, dry_run: bool
) -> Outcome:
    if product is None:
        return Outcome(pk, "not_found", "No such product.")
    if action in ("pause", "resume") and product.is_active == (action == "resume"):
        return Outcome(pk, "unchanged")
    if dry_run:
        return Outcome(pk, "done")
    try:
        _do(action, product, actor)
    except Refused as refused:
        return Outcome(pk, "refused", refused.detail)
    return Outcome(pk, "done")


def _do(action: str, product: Product, actor: Actor) -> None:
    if action == "crawl":
        crawl_product(product, actor=actor)
    elif action == "delist":
        delisting.delist(product, actor=actor)
    elif action == "delete":
        delete_product(product, actor=actor)
    else:
        update_product(product, actor=actor, is_active=action == "resume")


@transaction.atomic
def dismiss(change: Change, *, actor: Actor, note: str = "") -> Change:
    """Nobody needs to hear of it any more; what is held is let go."""
    locked = (
        Change.objects.select_for_update(of=("self",))
        .select_related("product__website")
        .get(pk=change.pk)
    )
    if locked.status == Change.Status.DISMISSED:
        return locked
    before = {"status": locked.status}
    locked.status, locked.note = Change.Status.DISMISSED, note or f"dismissed by {actor.name}"[:255]
    locked.save(update_fields=["status", "note"])
    if before["status"] == Change.Status.QUARANTINED:
        Product.objects.filter(pk=locked.product_id).update(
            held_price=None, held_currency="", held_reason="", updated_at=timezone.now()
        )
    client_id = locked.product.website.client_id
    audit.record(actor, "dismiss", locked, client_id=client_id, before=before)
    return locked


def _lock_website(website_id: uuid.UUID) -> Website:
    hold_websites([website_id])
    return Website.objects.select_for_update(of=("self",), no_key=True).get(pk=website_id)


def ids_of(visible: Any, **chosen: Any) -> Sequence[uuid.UUID]:
    """The products a filter means, the oldest first."""
    return list(visible.filter(**chosen).order_by("id").values_list("id", flat=True)[:MAX_ITEMS])
