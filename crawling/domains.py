"""Hosts as operators set them: pace, robots, on and off, blocked."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, NotRequired, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import audit
from accounts.audit import Actor
from common.errors import Invalid, Stale
from crawling.models import Domain

LONGEST_DELAY_SECONDS = 3600
FASTEST_RPS = 1000
HEADER_TEXT = re.compile(r"[ -~]*")


class Changes(TypedDict):
    """What of a domain can be changed."""

    crawl_delay_seconds: NotRequired[float]
    rate_limit_rps: NotRequired[float | None]
    max_concurrent_requests: NotRequired[int]
    respect_robots: NotRequired[bool]
    user_agent: NotRequired[str]
    is_active: NotRequired[bool]
    is_blocked: NotRequired[bool]
    blocked_reason: NotRequired[str]


FIELDS = tuple(Changes.__annotations__)


@transaction.atomic
def update_domain(
    domain: Domain, *, actor: Actor, seen_at: dt.datetime | None = None, **changes: Unpack[Changes]
) -> Domain:
    """Change what is named; the next slice works by it."""
    locked = Domain.objects.select_for_update(no_key=True).get(pk=domain.pk)
    if seen_at is not None and locked.updated_at != seen_at:
        raise Stale("The domain was changed meanwhile: read it again, then change it.")
    before = _facts(locked)
    for name, value in changes.items():
        setattr(locked, name, value)
    _check(locked)
    after = _facts(locked)
    changed = [name for name in FIELDS if before[name] != after[name]]
    if changed:
        # Only these columns: a worker may be writing the others.
        locked.save(update_fields=[*changed, "updated_at"])
        audit.record(
            actor,
            "update",
            locked,
            before={name: before[name] for name in changed},
            after={name: after[name] for name in changed},
        )
    return locked


def block(domain: Domain, *, actor: Actor, reason: str = "by an operator") -> Domain:
    """Nobody crawls or registers it any more."""
    return update_domain(domain, actor=actor, is_blocked=True, blocked_reason=reason)


def unblock(domain: Domain, *, actor: Actor) -> Domain:
    return update_domain(domain, actor=actor, is_blocked=False, blocked_reason="")


def _check(domain: Domain) -> None:
    if not HEADER_TEXT.fullmatch(domain.user_agent):
        raise Invalid("Only printable ASCII characters.", attr="user_agent")
    if domain.crawl_delay_seconds > LONGEST_DELAY_SECONDS:
        raise Invalid(f"At most {LONGEST_DELAY_SECONDS} seconds.", attr="crawl_delay_seconds")
    try:
        domain.clean_fields()
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from error


def _facts(domain: Domain) -> dict[str, Any]:
    return {name: getattr(domain, name) for name in FIELDS}
