"""Which proxy a page goes through, and how each has served.

A ``Chooser`` lives in memory during a visit: rows are read once, outcomes are noted on them,
and ``save`` replays the outcomes on the locked rows, so that workers who share a proxy add
to each other's figures.
"""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import structlog
from django.db import transaction
from django.db.models import QuerySet

from common.proxying import Protocol, ProxyAddress
from crawling.models import Domain, DomainProxy, Proxy
from crawling.models.proxies import Health

logger = structlog.get_logger(__name__)

EWMA_WEIGHT = 0.2
FIRST_REST = dt.timedelta(minutes=15)
LONGEST_REST = dt.timedelta(hours=24)
HOUR = dt.timedelta(hours=1)
# When nothing but an operator can help.
LOOK_AGAIN = dt.timedelta(minutes=15)
PROBE_WAIT = dt.timedelta(seconds=5)
# Outcomes that are written before the visit ends.
BATCH = 200
FIELDS = (
    "success_count",
    "failure_count",
    "consecutive_failures",
    "response_ms_ewma",
    "last_used_at",
    "last_success_at",
    "last_failure_at",
    "resting_until",
    "is_active",
)
Row = TypeVar("Row", Proxy, DomainProxy)


@dataclass(frozen=True, slots=True)
class Limits:
    """Failures in a row after which something rests, and after which it is switched off."""

    rests_after: int
    off_after: int


MAPPING = Limits(rests_after=1, off_after=5)
# One dead shop must not put a proxy to rest that serves others well.
PROXY = Limits(rests_after=3, off_after=10)


@dataclass(frozen=True, slots=True)
class Choice:
    mapping_id: uuid.UUID
    proxy_id: uuid.UUID
    address: ProxyAddress
    chosen_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Outcome:
    ok: bool
    elapsed_ms: float | None
    began_at: dt.datetime
    ended_at: dt.datetime


class Chooser:
    def __init__(self, rotation: str, mappings: Sequence[DomainProxy]) -> None:
        self._rotation = rotation
        self._mappings = {mapping.id: mapping for mapping in mappings}
        self._outcomes: list[tuple[Choice, Outcome]] = []
        self._in_flight: Counter[uuid.UUID] = Counter()

    @property
    def required(self) -> bool:
        """The domain has proxies: its pages go through one of them or wait."""
        return bool(self._mappings)

    def choose(self, now: dt.datetime) -> Choice | None:
        usable = [one for one in self._mappings.values() if self._usable_at(one, now) <= now]
        if not usable:
            return None
        first = min(one.priority for one in usable)
        chosen = ROTATIONS[self._rotation]([one for one in usable if one.priority == first])
        chosen.last_used_at = now
        self._in_flight[chosen.id] += 1
        return Choice(chosen.id, chosen.proxy_id, address_of(chosen.proxy), now)

    def report(
        self, choice: Choice, *, ok: bool, elapsed_ms: float | None, now: dt.datetime
    ) -> None:
        """Tell how the request went; ``ok`` unless the proxy itself failed."""
        outcome = Outcome(ok, elapsed_ms, choice.chosen_at, now)
        mapping = self._mappings[choice.mapping_id]
        self._in_flight[choice.mapping_id] -= 1
        note(mapping, outcome, MAPPING)
        note(mapping.proxy, outcome, PROXY)
        _count(mapping.proxy, outcome)
        self._outcomes.append((choice, outcome))

    def release(self, choice: Choice) -> None:
        """The request was called off: it says nothing."""
        self._in_flight[choice.mapping_id] -= 1

    @property
    def is_due(self) -> bool:
        return len(self._outcomes) >= BATCH

    def next_usable_at(self, now: dt.datetime) -> dt.datetime:
        """Until then pages of the domain are deferred, when ``choose`` finds nothing."""
        moments = [self._usable_at(one, now) for one in self._mappings.values()]
        return min(moments, default=now)

    @transaction.atomic
    def save(self) -> None:
        """Write what was learned since the last time; at the end of a visit or before it."""
        outcomes, self._outcomes = self._outcomes, []
        if not outcomes:
            return
        by_mapping = [(choice.mapping_id, outcome) for choice, outcome in outcomes]
        by_proxy = [(choice.proxy_id, outcome) for choice, outcome in outcomes]
        _replay(DomainProxy.objects.select_related("domain"), by_mapping, MAPPING, FIELDS)
        fields = (*FIELDS, "disabled_reason", "hour_at", "hour_count")
        _replay(Proxy.objects.all(), by_proxy, PROXY, fields)

    def _usable_at(self, mapping: DomainProxy, now: dt.datetime) -> dt.datetime:
        proxy = mapping.proxy
        if not (mapping.is_active and proxy.is_active):
            return now + LOOK_AGAIN
        moments = [now, *filter(None, (mapping.resting_until, proxy.resting_until))]
        if self._is_probe(mapping) and self._in_flight[mapping.id]:
            moments.append(now + PROBE_WAIT)
        if self._is_spent(mapping, now):
            moments.append(_hour_of(now) + HOUR)
        return max(moments)

    def _is_probe(self, mapping: DomainProxy) -> bool:
        """After a rest one request shows whether the proxy is back."""
        return (
            mapping.consecutive_failures >= MAPPING.rests_after
            or mapping.proxy.consecutive_failures >= PROXY.rests_after
        )

    def _is_spent(self, mapping: DomainProxy, now: dt.datetime) -> bool:
        cap = mapping.proxy.max_requests_per_hour
        used = _count_of_hour(mapping.proxy, now) + self._in_flight[mapping.id]
        return cap is not None and used >= cap


def load_chooser(domain: Domain) -> Chooser:
    mappings = DomainProxy.objects.filter(domain=domain).select_related("proxy")
    return Chooser(domain.proxy_rotation, list(mappings.order_by("created_at", "id")))


def address_of(proxy: Proxy) -> ProxyAddress:
    return ProxyAddress(
        cast(Protocol, proxy.protocol),
        proxy.host,
        proxy.port,
        proxy.username,
        proxy.password,
    )


def note(row: Health, outcome: Outcome, limits: Limits) -> None:
    """Write one outcome on a row; the only place that judges health."""
    row.last_used_at = _later(row.last_used_at, outcome.began_at)
    if outcome.ok:
        _note_success(row, outcome)
    else:
        _note_failure(row, outcome, limits)


def _note_success(row: Health, outcome: Outcome) -> None:
    row.success_count += 1
    row.last_success_at = _later(row.last_success_at, outcome.ended_at)
    row.consecutive_failures, row.resting_until = 0, None
    if outcome.elapsed_ms is not None:
        before = row.response_ms_ewma
        before = outcome.elapsed_ms if before is None else before
        row.response_ms_ewma = before + EWMA_WEIGHT * (outcome.elapsed_ms - before)


def _note_failure(row: Health, outcome: Outcome, limits: Limits) -> None:
    row.failure_count += 1
    # A request that was under way when the last one failed says nothing new.
    known_at = _later(row.last_failure_at, row.resting_until)
    row.last_failure_at = _later(row.last_failure_at, outcome.ended_at)
    if known_at is not None and outcome.began_at < known_at:
        return
    row.consecutive_failures += 1
    doublings = row.consecutive_failures - limits.rests_after
    if doublings >= 0:
        rest = min(FIRST_REST * 2 ** min(doublings, 10), LONGEST_REST)
        row.resting_until = outcome.ended_at + rest


def _later(one: dt.datetime | None, other: dt.datetime | None) -> dt.datetime | None:
    return max(filter(None, (one, other)), default=None)


def _replay(
    rows: QuerySet[Row],
    outcomes: Sequence[tuple[uuid.UUID, Outcome]],
    limits: Limits,
    fields: Sequence[str],
) -> None:
    ids = {row_id for row_id, _ in outcomes}
    # By id, so that two workers never wait for each other in a ring.
    locked = rows.filter(id__in=ids).order_by("id").select_for_update(no_key=True, of=("self",))
    found = {row.id: row for row in locked}
    for row_id, outcome in outcomes:
        if row := found.get(row_id):
            note(row, outcome, limits)
            if isinstance(row, Proxy):
                _count(row, outcome)
    for row in found.values():
        _switch_off(row, limits)
    if found:
        rows.model._default_manager.bulk_update(found.values(), fields)


def _switch_off(row: Proxy | DomainProxy, limits: Limits) -> None:
    if not row.is_active or row.consecutive_failures < limits.off_after:
        return
    row.is_active = False
    reason = f"failed {row.consecutive_failures} times in a row"
    proxy_id = row.id
    host = ""
    if isinstance(row, Proxy):
        row.disabled_reason = reason
    else:
        proxy_id, host = row.proxy_id, row.domain.host
    logger.warning("proxy.disabled", proxy_id=str(proxy_id), domain=host, reason=reason)


def _hour_of(now: dt.datetime) -> dt.datetime:
    return now.replace(minute=0, second=0, microsecond=0)


def _count(proxy: Proxy, outcome: Outcome) -> None:
    proxy.hour_count = _count_of_hour(proxy, outcome.began_at) + 1
    proxy.hour_at = _hour_of(outcome.began_at)


def _count_of_hour(proxy: Proxy, now: dt.datetime) -> int:
    return proxy.hour_count if proxy.hour_at == _hour_of(now) else 0


def _never_first(mapping: DomainProxy) -> tuple[bool, dt.datetime | None]:
    return mapping.last_used_at is not None, mapping.last_used_at


def _least_recent(mappings: Sequence[DomainProxy]) -> DomainProxy:
    return min(mappings, key=_never_first)


def _next_in_turn(mappings: Sequence[DomainProxy]) -> DomainProxy:
    """The one after the last used, in the order in which they were assigned."""
    used = [index for index, one in enumerate(mappings) if one.last_used_at is not None]
    if not used:
        return mappings[0]
    last = max(used, key=lambda index: _never_first(mappings[index]))
    return mappings[(last + 1) % len(mappings)]


def _least_used(mappings: Sequence[DomainProxy]) -> DomainProxy:
    return min(mappings, key=lambda one: (one.success_count + one.failure_count, _never_first(one)))


ROTATIONS: dict[str, Callable[[Sequence[DomainProxy]], DomainProxy]] = {
    Domain.Rotation.LRU: _least_recent,
    Domain.Rotation.ROUND_ROBIN: _next_in_turn,
    Domain.Rotation.LEAST_USED: _least_used,
    Domain.Rotation.RANDOM: secrets.choice,
}
