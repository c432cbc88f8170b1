"""A registered website: changed, paused, resumed, crawled on demand and deleted."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NotRequired, TypedDict, Unpack

from django.db import transaction

from accounts import audit
from accounts.audit import Actor
from common.errors import Conflict, InvalidState, Stale
from common.ids import uuid7
from crawling import jobs
from crawling.frontier import hold_websites
from crawling.models import CrawlJob
from crawling.profiles import check_usable
from monitoring import approval_rules, history, runs, schedules
from monitoring.models import Product, Website
from monitoring.registration import checked_webhook, connect_webhook, facts
from monitoring.url_patterns import check_patterns, checked_rule
from notifications import endpoints
from notifications.events import publish

Status = Website.Status
COLUMNS = (
    "name",
    "crawl_frequency_minutes",
    "price_change_threshold_pct",
    "price_change_threshold_abs",
    "retention_days",
    "crawl_profile_id",
    "currency",
    "locale",
    "webhook_enabled",
    "discovery_max_pages",
    "auto_approve",
    "banned_patterns",
)


class Changes(TypedDict):
    """What of a website can be changed."""

    name: NotRequired[str]
    crawl_frequency_minutes: NotRequired[int]
    price_change_threshold_pct: NotRequired[Decimal]
    price_change_threshold_abs: NotRequired[Decimal | None]
    retention_days: NotRequired[int]
    crawl_profile_id: NotRequired[uuid.UUID | None]
    currency: NotRequired[str]
    locale: NotRequired[str]
    webhook_endpoint_url: NotRequired[str | None]
    webhook_enabled: NotRequired[bool]
    discovery_max_pages: NotRequired[int | None]
    auto_approve: NotRequired[dict[str, Any] | None]
    banned_patterns: NotRequired[Sequence[str]]


def update_website(
    website: Website,
    *,
    actor: Actor,
    seen_at: dt.datetime | None = None,
    **changes: Unpack[Changes],
) -> Website:
    """Change what is named; ``seen_at`` refuses if it was changed since."""
    _check(website, changes)
    with transaction.atomic():
        locked = _lock(website)
        if seen_at is not None and locked.updated_at != seen_at:
            raise Stale("The website was changed meanwhile: read it again, then change it.")
        before = facts(locked)
        for name in COLUMNS:
            if name in changes:
                setattr(locked, name, changes[name])  # type: ignore[literal-required]
        locked.save()
        if locked.crawl_frequency_minutes != before["crawl_frequency_minutes"]:
            schedules.change_frequency(locked)
        _update_webhook(locked, changes, actor)
        _record_update(locked, before, actor)
        _apply_rules(locked, changes, actor)
    return locked


def _check(website: Website, changes: Changes) -> None:
    """What may ask others, before rows are locked."""
    if "webhook_endpoint_url" in changes:
        changes["webhook_endpoint_url"] = checked_webhook(changes["webhook_endpoint_url"])
    if "crawl_profile_id" in changes:
        check_usable(website.client, changes["crawl_profile_id"], attr="crawl_profile_id")
    if "auto_approve" in changes:
        changes["auto_approve"] = checked_rule(changes["auto_approve"])
    if "banned_patterns" in changes:
        patterns = check_patterns(changes["banned_patterns"], attr="banned_patterns")
        changes["banned_patterns"] = patterns


def _apply_rules(website: Website, changes: Changes, actor: Actor) -> None:
    """New rules hold for the candidates that wait already."""
    if "banned_patterns" in changes:
        approval_rules.reject_banned(website, actor=actor)
    if "auto_approve" in changes and website.status != Status.PAUSED:
        approval_rules.approve_by_rule(website)
    if not {"banned_patterns", "auto_approve"}.isdisjoint(changes):
        website.refresh_from_db(from_queryset=Website.objects.select_related("client"))


def ban_folders_of(ids: Sequence[uuid.UUID], *, actor: Actor) -> int:
    """Never look again at the folders of these candidates; answers how many were rejected."""
    with transaction.atomic():
        patterns = approval_rules.patterns_of(list(ids))
        rejected = 0
        for website in Website.objects.filter(id__in=patterns).order_by("id"):
            waiting = website.products.filter(approval=Product.Approval.PENDING)
            before = waiting.count()
            both = [*website.banned_patterns, *sorted(patterns[website.pk])]
            update_website(website, actor=actor, banned_patterns=both)
            rejected += before - waiting.count()
    return rejected


def ban_pattern(website: Website, pattern: str, *, actor: Actor) -> int:
    """Never look at these addresses again; answers how many candidates were rejected."""
    with transaction.atomic():
        waiting = website.products.filter(approval=Product.Approval.PENDING)
        before = waiting.count()
        locked = _lock(website)
        update_website(locked, actor=actor, banned_patterns=[*locked.banned_patterns, pattern])
        return before - waiting.count()


def _update_webhook(website: Website, changes: Changes, actor: Actor) -> None:
    if "webhook_endpoint_url" in changes:
        connect_webhook(website, changes["webhook_endpoint_url"], actor=actor)
    elif "webhook_enabled" in changes:
        url = endpoints.website_endpoint_urls([website.pk]).get(website.pk)
        connect_webhook(website, url, actor=actor)


def _record_update(website: Website, before: dict[str, Any], actor: Actor) -> None:
    after = facts(website)
    changed = [name for name in after if after[name] != before[name]]
    if changed:
        audit.record(
            actor,
            "update",
            website,
            client_id=website.client_id,
            before={name: before[name] for name in changed},
            after={name: after[name] for name in changed},
        )


def pause(website: Website, *, actor: Actor) -> Website:
    """No scheduled runs until it is resumed."""
    return _move(website, (Status.ACTIVE,), Status.PAUSED, actor=actor)


def resume(website: Website, *, actor: Actor) -> Website:
    """Watch again, also after failures; they are forgiven."""
    return _move(website, (Status.PAUSED, Status.FAILED), Status.ACTIVE, actor=actor)


@transaction.atomic
def _move(website: Website, allowed: tuple[str, ...], to: str, *, actor: Actor) -> Website:
    locked = _lock(website)
    verb = "pause" if to == Status.PAUSED else "resume"
    _require(locked, allowed, f"{verb}d")
    before = {"status": locked.status}
    locked.status, locked.consecutive_failures = to, 0
    locked.save(update_fields=["status", "consecutive_failures", "updated_at"])
    schedules.switch(locked, on=to == Status.ACTIVE)
    audit.record(
        actor, verb, locked, client_id=locked.client_id, before=before, after={"status": to}
    )
    kind = "website.activated" if to == Status.ACTIVE else "website.paused"
    publish([runs.website_event(locked, kind, cause=uuid7())])
    return locked


@transaction.atomic
def crawl_now(website: Website, *, actor: Actor) -> CrawlJob:
    """Look at every watched product once, beside the schedule."""
    locked = _lock(website)
    _require(locked, (Status.ACTIVE,), "crawled")
    _refuse_second(locked, CrawlJob.Kind.MONITOR)
    _refuse_second(locked, CrawlJob.Kind.BASELINE)
    job = runs.start_monitoring(locked, triggered_by=CrawlJob.Trigger.MANUAL)
    assert job is not None
    _record_run(locked, job, actor, "crawl")
    return job


@transaction.atomic
def discover_now(
    website: Website,
    *,
    actor: Actor,
    max_pages: int | None = None,
    sources: Sequence[str] = runs.SOURCES,
) -> CrawlJob:
    """Look for products again; known ones stay as they are."""
    locked = _lock(website)
    _require(locked, (Status.PENDING_APPROVAL, Status.ACTIVE, Status.FAILED), "discovered")
    _refuse_second(locked, CrawlJob.Kind.DISCOVERY)
    job = runs.start_discovery(
        locked, triggered_by=CrawlJob.Trigger.MANUAL, max_pages=max_pages, sources=sources
    )
    _record_run(locked, job, actor, "discover")
    return job


@transaction.atomic
def delete_website(website: Website, *, actor: Actor) -> None:
    """With its products, schedule, endpoint and history; what is on its way is dropped."""
    hold_websites([website.pk])
    # Jobs are locked before websites, as everywhere; one that ends meanwhile is not live.
    live = CrawlJob.objects.live().filter(website_id=website.pk).order_by("id")
    for job in list(live.select_for_update(of=("self",))):
        # Nobody waits for it any more, and news would lock the feed before the website.
        jobs.cancel(job, actor=actor, quietly=True)
    locked = _lock(website)
    endpoints.set_website_endpoint(locked.client, locked.pk, None, actor=actor)
    audit.record(actor, "delete", locked, client_id=locked.client_id, before=facts(locked))
    if locked.periodic_task is not None:
        locked.periodic_task.delete()
    # Millions of rows do not belong into one transaction; what fails here, the purge finds.
    transaction.on_commit(partial(history.delete_history, locked.pk), robust=True)
    locked.delete()


def _lock(website: Website) -> Website:
    hold_websites([website.pk])
    rows = Website.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("client", "periodic_task__crontab", "periodic_task__interval").get(
        pk=website.pk
    )


def _require(website: Website, allowed: tuple[str, ...], done: str) -> None:
    if website.status not in allowed:
        names = " or ".join(str(status) for status in allowed)
        raise InvalidState(
            f"A website that is {website.status} cannot be {done}; it must be {names}."
        )


def _refuse_second(website: Website, kind: str) -> None:
    live = CrawlJob.objects.live().filter(website_id=website.pk, kind=kind).first()
    if live is not None:
        raise Conflict(f"Job {live.pk} is doing this already: wait for it or cancel it.")


def _record_run(website: Website, job: CrawlJob, actor: Actor, verb: str) -> None:
    audit.record(actor, verb, website, client_id=website.client_id, after={"job_id": str(job.pk)})
