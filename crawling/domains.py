"""Hosts as operators set them: made, paced, blocked, their circuit and robots.txt."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import Any, NotRequired, TypedDict, Unpack

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.errors import Conflict, Invalid, InvalidState, Stale
from common.http import Policy
from common.urls import host_and_port, host_of, origin_of
from crawling.models import CrawlError, CrawlTask, Domain
from crawling.windows import quiet_until
from extraction.sites import PARSERS

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
    default_crawl_frequency_seconds: NotRequired[int]
    parser_name: NotRequired[str]
    proxy_rotation: NotRequired[str]
    breaker_threshold: NotRequired[int]
    breaker_timeout_s: NotRequired[int]
    maintenance_start: NotRequired[dt.time | None]
    maintenance_end: NotRequired[dt.time | None]
    maintenance_timezone: NotRequired[str]
    is_active: NotRequired[bool]
    is_blocked: NotRequired[bool]
    blocked_reason: NotRequired[str]


FIELDS = tuple(Changes.__annotations__)
LAST_ERRORS = 10


@transaction.atomic
def create_domain(base_url: str, *, actor: Actor, **changes: Unpack[Changes]) -> Domain:
    """A host before anybody crawls it, so that its pace is set in time."""
    policy = Policy.from_settings()
    url = policy.parse(base_url)
    policy.check_literally(*host_and_port(url))
    domain = Domain(
        host=host_of(url),
        base_url=origin_of(url),
        crawl_delay_seconds=settings.CRAWL_DEFAULT_DELAY_SECONDS,
        max_concurrent_requests=settings.CRAWL_DEFAULT_CONCURRENCY,
    )
    for name, value in changes.items():
        setattr(domain, name, value)
    _check(domain)
    _, made = Domain.objects.get_or_create(host=domain.host, defaults=_columns(domain))
    if not made:
        raise Conflict(f"The domain {domain.host} exists: change it instead.", attr="base_url")
    stored = Domain.objects.get(host=domain.host)
    audit.record(actor, "create", stored, after=_facts(stored))
    return stored


@transaction.atomic
def delete_domain(domain: Domain, *, actor: Actor) -> None:
    """Forget a host with its past pages; not while somebody waits for it."""
    locked = Domain.objects.select_for_update().get(pk=domain.pk)
    if locked.tasks.exclude(status__in=CrawlTask.TERMINAL).exists():
        raise Conflict("Pages of this domain are waiting: cancel their jobs, or block it instead.")
    audit.record(actor, "delete", locked, before=_facts(locked))
    locked.delete()


@transaction.atomic
def update_domain(
    domain: Domain, *, actor: Actor, seen_at: dt.datetime | None = None, **changes: Unpack[Changes]
) -> Domain:
    """Change what is named; the next slice works by it."""
    locked = Domain.objects.select_for_update(no_key=True).get(pk=domain.pk)
    if seen_at is not None and locked.updated_at != seen_at:
        raise Stale("The domain was changed meanwhile: read it again, then change it.")
    before = _facts(locked)
    rested_until = quiet_until(locked, timezone.now())
    for name, value in changes.items():
        setattr(locked, name, value)
    _check(locked)
    after = _facts(locked)
    changed = [name for name in FIELDS if before[name] != after[name]]
    if changed:
        # Only these columns: a worker may be writing the others.
        locked.save(update_fields=[*changed, *_woken(locked, changed, rested_until), "updated_at"])
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


@transaction.atomic
def reset_circuit(domain: Domain, *, actor: Actor) -> Domain:
    """Close the circuit and let the host be asked again, at its pace."""
    locked = Domain.objects.select_for_update(no_key=True).get(pk=domain.pk)
    if locked.breaker_state == Domain.Breaker.CLOSED and not locked.breaker_failures:
        raise InvalidState("The circuit is closed already: it must be open or half open.")
    before = {"breaker_state": locked.breaker_state, "breaker_failures": locked.breaker_failures}
    locked.breaker_state, locked.breaker_opened_at = Domain.Breaker.CLOSED, None
    locked.breaker_failures = locked.breaker_openings = 0
    locked.breaker_window = {}
    # What a 429 asked for stays; the gap itself is kept by whoever asks next.
    if not locked.backoff_seconds:
        locked.next_allowed_at = None
    locked.save()
    after = {"breaker_state": locked.breaker_state, "breaker_failures": 0}
    audit.record(actor, "reset_circuit", locked, before=before, after=after)
    return locked


def stats_of(domain: Domain) -> dict[str, Any]:
    """How a host has served, what waits for it and what went wrong last."""
    answers = domain.success_count + domain.failure_count
    counted = domain.tasks.order_by().values("status").annotate(count=Count("id"))
    return {
        "host": domain.host,
        "success_count": domain.success_count,
        "failure_count": domain.failure_count,
        "success_pct": round(100 * domain.success_count / answers, 1) if answers else None,
        "response_ms_ewma": domain.response_ms_ewma,
        "throttle_seconds": domain.throttle_seconds,
        "breaker_state": domain.breaker_state,
        "breaker_failures": domain.breaker_failures,
        "next_allowed_at": domain.next_allowed_at,
        "tasks": {row["status"]: row["count"] for row in counted},
        "last_errors": list(CrawlError.objects.filter(domain=domain)[:LAST_ERRORS]),
    }


def _woken(domain: Domain, changed: list[str], rested_until: dt.datetime | None) -> list[str]:
    """A host that only rested in a window which was moved need not wait for its old end."""
    moved = any(name.startswith("maintenance_") for name in changed)
    if not moved or rested_until is None or domain.next_allowed_at != rested_until:
        return []
    domain.next_allowed_at = None
    return ["next_allowed_at"]


def _check(domain: Domain) -> None:
    if not HEADER_TEXT.fullmatch(domain.user_agent):
        raise Invalid("Only printable ASCII characters.", attr="user_agent")
    if domain.crawl_delay_seconds > LONGEST_DELAY_SECONDS:
        raise Invalid(f"At most {LONGEST_DELAY_SECONDS} seconds.", attr="crawl_delay_seconds")
    if (domain.maintenance_start is None) != (domain.maintenance_end is None):
        raise Invalid("Give both ends of the window, or none.", attr="maintenance_end")
    if domain.maintenance_start is not None and domain.maintenance_start == domain.maintenance_end:
        text = "The window must end at another time; to stop for good, switch the domain off."
        raise Invalid(text, attr="maintenance_end")
    if domain.maintenance_timezone not in zoneinfo.available_timezones():
        text = "Must be an IANA time zone such as Europe/Berlin."
        raise Invalid(text, attr="maintenance_timezone")
    if domain.parser_name not in PARSERS:
        raise Invalid(f"Must be one of: {', '.join(sorted(PARSERS))}.", attr="parser_name")
    try:
        domain.clean_fields()
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from error


def _facts(domain: Domain) -> dict[str, Any]:
    facts = {name: getattr(domain, name) for name in FIELDS}
    times = {name: str(fact) for name, fact in facts.items() if isinstance(fact, dt.time)}
    return facts | times


def _columns(domain: Domain) -> dict[str, Any]:
    return {name: getattr(domain, name) for name in (*FIELDS, "base_url")}
