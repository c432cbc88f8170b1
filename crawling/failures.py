"""Errors in groups, and the dead letters: tasks that failed for good."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery

from accounts.audit import SYSTEM, Actor
from common.errors import InvalidState
from crawling import control
from crawling.control import Order, Outcome
from crawling.models import CrawlError, CrawlTask
from crawling.selections import TaskFilter
from crawling.states import Status


def error_groups(errors: QuerySet[CrawlError]) -> Any:
    """The same trouble of one domain is one row, the freshest first, in one query."""
    newest = CrawlError.objects.filter(
        fingerprint=OuterRef("fingerprint"), domain=OuterRef("domain")
    ).order_by("-occurred_at")
    names = (
        *("fingerprint", "category", "host", "count", "dead", "first_at", "last_at"),
        *("sample", "sample_task"),
    )
    return (
        errors.order_by()
        .values("fingerprint", "category", "domain_id", host=F("domain__host"))
        .annotate(
            count=Count("id"),
            dead=Count("task", filter=Q(task__status=Status.FAILED), distinct=True),
            first_at=Min("occurred_at"),
            last_at=Max("occurred_at"),
            sample=Subquery(newest.values("message")[:1]),
            sample_task=Subquery(newest.values("task_id")[:1]),
        )
        .order_by("-last_at", "fingerprint", "host")
        .values_list(*names, named=True)
    )


def newest(most: int, *, since: dt.datetime) -> QuerySet[CrawlError]:
    """So many errors and no older ones: groups of a bad week would take seconds."""
    moments = CrawlError.objects.order_by("-occurred_at", "-id").values_list("occurred_at")
    past = moments[most : most + 1].first()
    begin = max(since, past[0]) if past else since
    return CrawlError.objects.filter(occurred_at__gte=begin)


def stored_pages_of(task_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, uuid.UUID]:
    """Of each task that has one, the page that was kept."""
    kept = CrawlTask.objects.filter(pk__in=list(task_ids), stored_page__isnull=False)
    found: dict[uuid.UUID, Any] = dict(kept.values_list("pk", "stored_page_id"))
    return found


def dead_letters() -> QuerySet[CrawlTask]:
    return CrawlTask.objects.filter(status=Status.FAILED)


def retry(task: CrawlTask, *, actor: Actor = SYSTEM) -> CrawlTask:
    """One dead letter again, from the network and with all its tries."""
    if task.status != Status.FAILED:
        raise InvalidState(f"A task that is {task.status} is no dead letter; it must be: failed.")
    return control.restart(task, actor=actor)


def retry_group(
    fingerprint: str, *, limit: int = 1000, dry_run: bool = False, actor: Actor = SYSTEM
) -> Outcome:
    """All that died of the same trouble."""
    chosen = TaskFilter(fingerprint=fingerprint)
    return retry_many(chosen, limit=limit, dry_run=dry_run, actor=actor)


def retry_many(
    chosen: TaskFilter, *, limit: int = 1000, dry_run: bool = False, actor: Actor = SYSTEM
) -> Outcome:
    dead = replace(chosen, status=Status.FAILED)
    return control.bulk(Order(action="restart"), dead, limit=limit, dry_run=dry_run, actor=actor)
