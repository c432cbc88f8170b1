"""What people do to tasks and jobs: pause, resume, cancel, restart, priority.

Everything is compare-and-set on the states that allow it. A task in flight is let go by
its slice within a second; its late page finds a fence that is not its own.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from accounts import audit
from accounts.audit import SYSTEM, Actor
from common.errors import Conflict, Invalid, InvalidState
from common.wakeups import wake_on_commit
from crawling import jobs, recurrence, validators
from crawling.frontier import CRAWL, PARSE
from crawling.models import CrawlTask
from crawling.selections import TaskFilter
from crawling.states import Status, advance

OPEN = tuple(status for status in Status.values if status not in CrawlTask.TERMINAL)
# What a restart takes back from its job's count.
ENDED = (Status.COMPLETED, Status.FAILED)
MAX_BULK = 10_000
TWIN = "This URL already waits in another task; that one will do."


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be done, with its details."""

    action: str
    from_: str = "fetch"
    reset_retry_count: bool = True
    priority: int | None = None
    scheduled_at: dt.datetime | None = None

    def __post_init__(self) -> None:
        if self.action not in ALLOWED:
            raise Invalid(f"Must be one of: {', '.join(ALLOWED)}.", attr="action")
        if self.from_ not in ("fetch", "parse"):
            raise Invalid("Must be fetch or parse.", attr="from")
        if self.action == "priority" and self.priority is None:
            raise Invalid("Say which priority, 1 to 10.", attr="priority")
        if self.priority is not None and not 1 <= self.priority <= 10:
            raise Invalid("Must be 1 to 10; 1 is the most urgent.", attr="priority")

    @property
    def allowed(self) -> tuple[str, ...]:
        if self.action == "restart" and self.from_ == "parse":
            return CrawlTask.MOVES[Status.QUEUED_PARSE]
        return ALLOWED[self.action]

    @property
    def possible(self) -> Q:
        parse = self.action == "restart" and self.from_ == "parse"
        has_page = Q(stored_page__isnull=False) if parse else Q()
        return Q(status__in=self.allowed) & has_page

    @property
    def details(self) -> dict[str, Any]:
        named: dict[str, Any] = {}
        if self.action == "restart":
            named = {"from": self.from_, "reset_retry_count": self.reset_retry_count}
        if self.priority is not None:
            named["priority"] = self.priority
        if self.scheduled_at is not None:
            named["scheduled_at"] = self.scheduled_at.isoformat()
        return named


ALLOWED: dict[str, tuple[str, ...]] = {
    "pause": CrawlTask.MOVES[Status.PAUSED],
    "resume": (Status.PAUSED,),
    "cancel": CrawlTask.MOVES[Status.CANCELLED],
    "restart": CrawlTask.MOVES[Status.PENDING],
    "priority": OPEN,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    action: str
    dry_run: bool
    # Tasks the filter finds, by state; those that were (or would be) changed, by the
    # state they were in; and which.
    matched: dict[str, int]
    changed: dict[str, int]
    ids: list[uuid.UUID]


def pause(task: CrawlTask, *, actor: Actor = SYSTEM) -> CrawlTask:
    return _do_one(task, Order(action="pause"), actor)


def resume(task: CrawlTask, *, actor: Actor = SYSTEM) -> CrawlTask:
    """On from where the pause found it."""
    return _do_one(task, Order(action="resume"), actor)


def cancel(task: CrawlTask, *, actor: Actor = SYSTEM) -> CrawlTask:
    return _do_one(task, Order(action="cancel"), actor)


def set_priority(task: CrawlTask, priority: int, *, actor: Actor = SYSTEM) -> CrawlTask:
    return _do_one(task, Order(action="priority", priority=priority), actor)


def restart(
    task: CrawlTask,
    *,
    from_: str = "fetch",
    reset_retry_count: bool = True,
    priority: int | None = None,
    scheduled_at: dt.datetime | None = None,
    actor: Actor = SYSTEM,
) -> CrawlTask:
    """Again from the network, or from the stored page."""
    order = Order(
        action="restart",
        from_=from_,
        reset_retry_count=reset_retry_count,
        priority=priority,
        scheduled_at=scheduled_at,
    )
    return _do_one(task, order, actor)


def bulk(
    order: Order,
    chosen: TaskFilter,
    *,
    limit: int = 1000,
    dry_run: bool = False,
    actor: Actor = SYSTEM,
) -> Outcome:
    """The same to many, the oldest first; those in other states are left alone."""
    if not 1 <= limit <= MAX_BULK:
        raise Invalid(f"Must be 1 to {MAX_BULK}.", attr="limit")
    rows = chosen.rows()
    matched = rows.order_by().values_list("status").annotate(Count("id"))
    ids = list(rows.filter(order.possible).order_by("id").values_list("id", flat=True)[:limit])
    done = _foresee(order, ids) if dry_run else perform(order, ids, actor=actor)
    changed = Counter(task.status for task in done)
    return Outcome(order.action, dry_run, dict(matched), dict(changed), [t.pk for t in done])


class Changes(TypedDict):
    """What of a task can be changed."""

    priority: NotRequired[int]
    scheduled_at: NotRequired[dt.datetime]
    crawl_frequency_seconds: NotRequired[int | None]
    max_retries: NotRequired[int]


# The frequency belongs to the row that carries it, whatever its state.
CHANGEABLE_IN = {
    "priority": OPEN,
    "max_retries": OPEN,
    "scheduled_at": (Status.PENDING, Status.QUEUED, Status.QUEUED_PARSE, Status.PAUSED),
}


@transaction.atomic
def update_task(task: CrawlTask, *, actor: Actor = SYSTEM, **changes: Unpack[Changes]) -> CrawlTask:
    locked = CrawlTask.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    before = {name: getattr(locked, name) for name in Changes.__annotations__}
    for name, value in changes.items():
        _require(locked, name)
        if name == "crawl_frequency_seconds":
            recurrence.set_frequency(locked, value)  # type: ignore[arg-type]
        else:
            setattr(locked, name, value)
    _check(locked)
    changed = [name for name in before if before[name] != getattr(locked, name)]
    if changed:
        locked.save(update_fields=[*changed, "is_recurring", "next_crawl_at", "updated_at"])
        old, new = ({name: _plain(row[name]) for name in changed} for row in (before, vars(locked)))
        client_id = locked.client_id
        audit.record(actor, "update", locked, client_id=client_id, before=old, after=new)
    return locked


def _require(task: CrawlTask, name: str) -> None:
    allowed = CHANGEABLE_IN.get(name, Status.values)
    if task.status not in allowed:
        raise InvalidState(
            f"The {name} of a task that is {task.status} cannot be changed;"
            f" it must be one of: {', '.join(allowed)}.",
            attr=name,
        )


def _check(task: CrawlTask) -> None:
    try:
        task.clean_fields(exclude={"url", "normalized_url", "final_url"})
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from error


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value


@transaction.atomic
def perform(order: Order, ids: Sequence[uuid.UUID], *, actor: Actor = SYSTEM) -> list[CrawlTask]:
    """Do it to those of the tasks that allow it; answers them as they were before."""
    named = CrawlTask.objects.filter(id__in=ids)
    jobs.lock(named.values_list("job_id", flat=True))
    locked = named.filter(order.possible).order_by("id").select_for_update(no_key=True)
    tasks = without_twins(order, list(locked))
    try:
        with transaction.atomic():
            _change(order, tasks)
    except IntegrityError as error:
        raise Conflict(TWIN) from error
    _record(order, tasks, actor)
    return tasks


def _foresee(order: Order, ids: Sequence[uuid.UUID]) -> list[CrawlTask]:
    return without_twins(order, list(CrawlTask.objects.filter(id__in=ids).order_by("id")))


def without_twins(order: Order, tasks: list[CrawlTask]) -> list[CrawlTask]:
    """A dead task does not come back while its URL lives in another, nor twice at once."""
    if order.action != "restart":
        return tasks
    dead = [task for task in tasks if task.status in CrawlTask.TERMINAL]
    twins = CrawlTask.objects.filter(url_hash__in={task.url_hash for task in dead})
    live = {_key(twin) for twin in twins.filter(status__in=OPEN)} if dead else set()
    kept = []
    for task in tasks:
        if task.status in CrawlTask.TERMINAL:
            if _key(task) in live:
                continue
            live.add(_key(task))
        kept.append(task)
    return kept


def _key(task: CrawlTask) -> tuple[Any, ...]:
    return task.purpose, task.website_id, task.client_id, task.url_hash


def _change(order: Order, tasks: Sequence[CrawlTask]) -> None:
    rows = CrawlTask.objects.filter(id__in=[task.pk for task in tasks])
    if order.action == "pause":
        advance(rows, Status.PAUSED, paused_from=F("status"), leased_until=None)
    elif order.action == "resume":
        _resume(rows)
    elif order.action == "cancel":
        advance(rows, Status.CANCELLED, leased_until=None, completed_at=timezone.now())
        jobs.finish_done([task.job_id for task in tasks])
    elif order.action == "restart":
        _restart(order, rows, tasks)
    else:
        rows.update(priority=order.priority, updated_at=Now())


def _resume(rows: QuerySet[CrawlTask]) -> None:
    left: dict[str, Any] = {"paused_from": "", "claims": 0}
    fetched = (Status.DOWNLOADED, Status.QUEUED_PARSE)
    to_read = rows.filter(paused_from__in=fetched, stored_page__isnull=False)
    advance(to_read, Status.QUEUED_PARSE, **left)
    advance(rows.filter(status=Status.PAUSED), Status.PENDING, **left)
    wake_on_commit(CRAWL)
    wake_on_commit(PARSE)


def _restart(order: Order, rows: QuerySet[CrawlTask], tasks: Sequence[CrawlTask]) -> None:
    fields: dict[str, Any] = {
        "leased_until": None,
        "completed_at": None,
        "claims": 0,
        "paused_from": "",
        "fence": F("fence") + 1,
        "scheduled_at": order.scheduled_at or Now(),
    }
    if order.reset_retry_count:
        fields["retry_count"] = 0
    if order.priority is not None:
        fields["priority"] = order.priority
    if order.from_ == "parse":
        advance(rows, Status.QUEUED_PARSE, **fields)
        wake_on_commit(PARSE)
    else:
        # Who restarts a fetch wants the page itself, not the word that it is the same.
        validators.forget({task.url_hash for task in tasks})
        advance(rows, Status.PENDING, **fields)
        wake_on_commit(CRAWL)
    _reopen_jobs(tasks)


def _reopen_jobs(tasks: Iterable[CrawlTask]) -> None:
    """What had come to an end is no longer done, and its job no longer over."""
    done = Counter(task.job_id for task in tasks if task.status in ENDED)
    failed = Counter(task.job_id for task in tasks if task.status == Status.FAILED)
    jobs.reopen(done)
    jobs.count({job: jobs.Tally(processed=-n, errors=-failed[job]) for job, n in done.items()})


def _do_one(task: CrawlTask, order: Order, actor: Actor) -> CrawlTask:
    changed = perform(order, [task.pk], actor=actor)
    task.refresh_from_db()
    if not changed:
        _refuse(task, order)
    return task


def _refuse(task: CrawlTask, order: Order) -> None:
    if task.status in order.allowed:
        if order.from_ == "parse" and task.stored_page_id is None:
            raise InvalidState("No page of this task is stored: restart it from fetch.")
        raise Conflict(TWIN)
    done = {"priority": "get a new priority", "restart": f"be restarted from {order.from_}"}
    verb = done.get(order.action, f"be {PAST.get(order.action, order.action)}")
    raise InvalidState(
        f"A task that is {task.status} cannot {verb}; it must be one of: {', '.join(order.allowed)}."
    )


PAST = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}


def _record(order: Order, tasks: Iterable[CrawlTask], actor: Actor) -> None:
    groups: dict[tuple[uuid.UUID | None, str], list[CrawlTask]] = {}
    for task in tasks:
        groups.setdefault((task.client_id, task.status), []).append(task)
    for (client_id, status), group in groups.items():
        before = {"status": status}
        audit.record_many(
            actor, order.action, group, client_id=client_id, before=before, after=order.details
        )
