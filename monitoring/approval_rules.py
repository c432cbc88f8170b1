"""What a website's rules decide by themselves: candidates they approve, URLs they ban."""

from __future__ import annotations

import uuid

from accounts.audit import SYSTEM, Actor
from common.errors import Invalid, LimitReached
from monitoring import approval
from monitoring.models import Product, Website
from monitoring.url_patterns import ApprovalRule, first_match, folder_pattern


def approve_by_rule(website: Website) -> int:
    """Watch the candidates that the website's rule takes, the best first, as many as its
    quota allows; possible duplicates wait for somebody to look at them."""
    rule = ApprovalRule.of(website.auto_approve)
    if rule is None:
        return 0
    rows = website.products.filter(
        approval=Product.Approval.PENDING, duplicate_of=None, vanished_at=None
    )
    likely = rows.filter(discovery_score__gte=rule.min_score).order_by("-discovery_score", "id")
    taken = [
        pk
        for pk, score, url in likely.values_list("id", "discovery_score", "original_url")
        if rule.takes(score, url)
    ]
    room = approval.room_of(website)
    try:
        return len(approval.approve(taken[:room], actor=SYSTEM)) if taken and room else 0
    except LimitReached:
        # An operator lowered the quota right now.
        return 0


def reject_banned(website: Website, *, actor: Actor) -> int:
    """Candidates that the website's patterns ban by now."""
    if not website.banned_patterns:
        return 0
    pending = website.products.filter(approval=Product.Approval.PENDING)
    banned = [
        pk
        for pk, url in pending.values_list("id", "original_url")
        if first_match(website.banned_patterns, url)
    ]
    return len(approval.reject(banned, actor=actor)) if banned else 0


def patterns_of(ids: list[uuid.UUID]) -> dict[uuid.UUID, set[str]]:
    """The folders of these candidates, by website: what banning them means."""
    found: dict[uuid.UUID, set[str]] = {}
    for website_id, url in Product.objects.filter(id__in=ids).values_list(
        "website_id", "original_url"
    ):
        pattern = folder_pattern(url)
        if not pattern:
            raise Invalid(f"{url} is in no folder: ban it by a pattern of the website.")
        found.setdefault(website_id, set()).add(pattern)
    return found
