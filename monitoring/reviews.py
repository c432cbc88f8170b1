"""Many candidates at once: one decision, an answer for each of them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import transaction

from accounts.audit import Actor
from common.errors import Refused
from monitoring import approval
from monitoring.models import Product, ProductQuerySet
from monitoring.url_patterns import check_patterns, first_match

MAX_ITEMS = 1000
DECISIONS = {"approve": approval.approve, "reject": approval.reject}


@dataclass(frozen=True, slots=True)
class Outcome:
    id: uuid.UUID
    result: str
    detail: str = ""


def pending_ids(
    visible: ProductQuerySet,
    *,
    website: uuid.UUID | None = None,
    score_min: float | None = None,
    url_pattern: str | None = None,
    duplicates: bool | None = None,
) -> list[uuid.UUID]:
    """The candidates a filter means, the best first, at most as many as one call takes."""
    rows = visible.filter(approval=Product.Approval.PENDING)
    if website is not None:
        rows = rows.filter(website_id=website)
    if score_min is not None:
        rows = rows.filter(discovery_score__gte=score_min)
    if duplicates is not None:
        rows = rows.filter(duplicate_of__isnull=not duplicates)
    rows = rows.order_by("-discovery_score", "id")
    if url_pattern is None:
        return list(rows.values_list("id", flat=True)[:MAX_ITEMS])
    pattern = check_patterns([url_pattern], attr="filter.url_pattern")
    found = rows.values_list("id", "original_url").iterator(chunk_size=2000)
    return list(islice((pk for pk, url in found if first_match(pattern, url)), MAX_ITEMS))


@transaction.atomic
def decide(
    decision: str,
    ids: Sequence[uuid.UUID],
    visible: ProductQuerySet,
    *,
    actor: Actor,
    dry_run: bool = False,
) -> list[Outcome]:
    """Approve or reject each; a dry run does the same and takes it back."""
    websites = dict(visible.filter(id__in=ids).values_list("id", "website_id"))
    # All of them before the first event is written: feeds are locked last.
    approval.lock_websites_of(list(websites))
    outcomes: dict[uuid.UUID, Outcome] = {}
    for website_id in sorted(set(websites.values())):
        group = [pk for pk in websites if websites[pk] == website_id]
        outcomes |= _decide_for_one(decision, group, actor)
    if dry_run:
        transaction.set_rollback(True)
    unknown = "No such candidate."
    return [outcomes.get(pk) or Outcome(pk, "not_found", unknown) for pk in dict.fromkeys(ids)]


def _decide_for_one(
    decision: str, ids: Sequence[uuid.UUID], actor: Actor
) -> dict[uuid.UUID, Outcome]:
    """All candidates of one website: its quota takes them together or not at all."""
    try:
        changed = {product.pk for product in DECISIONS[decision](ids, actor=actor)}
    except Refused as refused:
        return {pk: Outcome(pk, "refused", refused.detail) for pk in ids}
    done = "approved" if decision == "approve" else "rejected"
    return {pk: Outcome(pk, done if pk in changed else "unchanged") for pk in ids}
