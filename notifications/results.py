"""Results of tries, written back in batches, and what they say about an endpoint's health."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from notifications.claims import HOLDING_TRIES, REST_AFTER
from notifications.endpoints import disable_endpoint
from notifications.models import Delivery, DeliveryAttempt, WebhookEndpoint
from notifications.retries import Verdict, judge
from notifications.sending import Outcome

DISABLE_AFTER = dt.timedelta(days=5)
DISABLE_TRIES = 10
# An endpoint that is away is asked again after as long as it has been away, within these.
REST_SECONDS = (5.0, 300.0)
# What PostgreSQL calls a deadlock and a serialization failure.
CROSSED = ("40P01", "40001")
HEALTH = ("failing_since", "failures_in_row", "resting_until")

_SETTLE = """
UPDATE notifications_delivery d
SET status = v.status,
    attempt_number = v.number,
    next_retry_at = statement_timestamp() + v.delay * interval '1 second',
    leased_until = NULL,
    last_http_status = v.http_status,
    last_error = v.error,
    delivered_at = CASE WHEN v.status = 'success' THEN statement_timestamp() END,
    updated_at = statement_timestamp()
FROM unnest(
    %s::uuid[], %s::int[], %s::text[], %s::int[], %s::float[], %s::int[], %s::text[]
) AS v (id, fence, status, number, delay, http_status, error)
WHERE d.id = v.id AND d.fence = v.fence
"""

# What must wait for a failed one is due when that one is: a claim would otherwise look at
# all that is held back, each time, and there may be a hundred thousand of them.
_PARK = f"""
UPDATE notifications_delivery d
SET next_retry_at = stuck.next_retry_at
FROM notifications_delivery stuck
WHERE stuck.id = ANY(%s) AND stuck.status = 'retrying' AND stuck.attempt_number < {HOLDING_TRIES}
AND d.endpoint_id = stuck.endpoint_id AND d.object_id = stuck.object_id
AND d.sequence > stuck.sequence
AND d.status IN ('pending', 'retrying') AND d.next_retry_at < stuck.next_retry_at
"""  # noqa: S608

# What waited for one that is over, however that came about, waits no longer.
_RELEASE = """
UPDATE notifications_delivery d
SET next_retry_at = statement_timestamp()
FROM notifications_delivery over
WHERE over.id = ANY(%s) AND over.status IN ('success', 'exhausted')
AND d.endpoint_id = over.endpoint_id AND d.object_id = over.object_id
AND d.status = 'pending' AND d.next_retry_at > statement_timestamp()
"""


@dataclass(frozen=True)
class Health:
    """What a batch says about one endpoint."""

    succeeded: bool
    fresh_failures: int
    rest_seconds: float


def record(outcomes: Sequence[Outcome]) -> None:
    """Write a batch of outcomes; one whose lease was lost leaves only its log line."""
    try:
        _record(outcomes)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) not in CROSSED:
            raise
        # The database ended it because two waited for each other; the other one is through now.
        _record(outcomes)


def _record(outcomes: Sequence[Outcome]) -> None:
    now = timezone.now()
    verdicts = [_judge(outcome, now) for outcome in outcomes]
    with transaction.atomic():
        existing = _lock(outcomes)
        _write(outcomes, verdicts)
        _move_others(_PARK, [one.parcel.delivery_id for one in outcomes if not one.succeeded])
        _move_others(_RELEASE, [one.parcel.delivery_id for one in outcomes if one.parcel.fence > 1])
        # All deliveries before any endpoint, as whoever claims, redelivers and recovers.
        _wake_waiting(outcomes)
        DeliveryAttempt.objects.bulk_create(
            _attempt(outcome) for outcome in outcomes if outcome.parcel.delivery_id in existing
        )
        failing = _note_health(outcomes, verdicts, now)
    _disable(outcomes, verdicts, failing)


def _judge(outcome: Outcome, now: dt.datetime) -> Verdict:
    return judge(
        number=outcome.parcel.number,
        http_status=outcome.http_status,
        retry_after=outcome.retry_after,
        schedule=settings.WEBHOOK_RETRY_SECONDS,
        now=now,
    )


def _lock(outcomes: Sequence[Outcome]) -> set[uuid.UUID]:
    """The deliveries that still exist: their endpoint may have been deleted meanwhile."""
    ids = [outcome.parcel.delivery_id for outcome in outcomes]
    rows = Delivery.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    return set(rows.values_list("pk", flat=True))


def _write(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> None:
    parcels = [outcome.parcel for outcome in outcomes]
    columns: list[Any] = [
        [parcel.delivery_id for parcel in parcels],
        [parcel.fence for parcel in parcels],
        [verdict.status.value for verdict in verdicts],
        [parcel.number for parcel in parcels],
        [verdict.delay_seconds for verdict in verdicts],
        [outcome.http_status for outcome in outcomes],
        [outcome.error for outcome in outcomes],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, columns)


def _move_others(statement: str, because_of: list[uuid.UUID]) -> None:
    if because_of:
        with connection.cursor() as cursor:
            cursor.execute(statement, [cast(Any, because_of)])


def _wake_waiting(outcomes: Sequence[Outcome]) -> None:
    """What waits for one that was away need not wait for hours now that somebody answers."""
    answered = {outcome.parcel.target.id for outcome in outcomes if outcome.succeeded}
    away = WebhookEndpoint.objects.filter(pk__in=answered, failures_in_row__gte=REST_AFTER)
    found, now = list(away.values_list("pk", flat=True)), timezone.now()
    if found:
        waiting = Delivery.objects.filter(endpoint__in=found, status__in=Delivery.OPEN)
        waiting.filter(next_retry_at__gt=now).update(next_retry_at=now)


def _attempt(outcome: Outcome) -> DeliveryAttempt:
    return DeliveryAttempt(
        delivery_id=outcome.parcel.delivery_id,
        number=outcome.parcel.number,
        attempted_at=outcome.attempted_at,
        url=outcome.parcel.target.url,
        signature_header=outcome.signature,
        standard_signature=outcome.standard_signature,
        own_headers=sorted(outcome.parcel.target.headers),
        status_code=outcome.http_status,
        duration_ms=outcome.duration_ms,
        response_headers=outcome.response_headers,
        response_body=outcome.response_body,
        error=outcome.error,
    )


def _note_health(
    outcomes: Sequence[Outcome], verdicts: Sequence[Verdict], now: dt.datetime
) -> list[WebhookEndpoint]:
    """Keep since when an endpoint only fails, and let it rest when it is away; answers those
    that have failed for so long that they may have to be switched off."""
    healths = _healths(outcomes, verdicts)
    well = [pk for pk, health in healths.items() if health.succeeded]
    unchanged = Q(pk__in=well, failing_since=None, failures_in_row=0)
    # Locked in one order: two senders may meet on the same endpoints.
    rows = WebhookEndpoint.objects.only(*HEALTH, "throttle_per_second").order_by("pk")
    rows = rows.filter(pk__in=list(healths)).exclude(unchanged)
    endpoints = list(rows.select_for_update(no_key=True))
    for endpoint in endpoints:
        if healths[endpoint.pk].succeeded:
            _recover(endpoint)
        else:
            _worsen(endpoint, healths[endpoint.pk], now)
    return [e for e in endpoints if e.failing_since and e.failing_since <= now - DISABLE_AFTER]


def _healths(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> dict[uuid.UUID, Health]:
    found: dict[uuid.UUID, Health] = {}
    for outcome, verdict in zip(outcomes, verdicts, strict=True):
        pk = outcome.parcel.target.id
        before = found.get(pk, Health(succeeded=False, fresh_failures=0, rest_seconds=0))
        fresh = outcome.parcel.number == 1 and not outcome.succeeded
        found[pk] = Health(
            succeeded=before.succeeded or outcome.succeeded,
            fresh_failures=before.fresh_failures + fresh,
            rest_seconds=max(before.rest_seconds, verdict.rest_seconds),
        )
    return found


def _recover(endpoint: WebhookEndpoint) -> None:
    endpoint.failing_since, endpoint.failures_in_row = None, 0
    if not endpoint.throttle_per_second:
        endpoint.resting_until = None
    _save_health(endpoint)


def _worsen(endpoint: WebhookEndpoint, health: Health, now: dt.datetime) -> None:
    endpoint.failing_since = endpoint.failing_since or now
    # One delivery that fails again and again says little about the others: it counts once.
    endpoint.failures_in_row += health.fresh_failures
    rest = health.rest_seconds
    if endpoint.failures_in_row >= REST_AFTER:
        away = (now - endpoint.failing_since).total_seconds()
        rest = max(rest, min(max(away, REST_SECONDS[0]), REST_SECONDS[1]))
    if rest:
        until = now + dt.timedelta(seconds=rest)
        endpoint.resting_until = max(endpoint.resting_until or until, until)
    _save_health(endpoint)


def _save_health(endpoint: WebhookEndpoint) -> None:
    endpoint.save(update_fields=HEALTH)


def _disable(
    outcomes: Sequence[Outcome], verdicts: Sequence[Verdict], failing: list[WebhookEndpoint]
) -> None:
    asked = {outcome.parcel.target.id: outcome.parcel.target.url for outcome in outcomes}
    reasons = {
        (outcome.parcel.target.id, outcome.parcel.target.url): verdict.disable_reason
        for outcome, verdict in zip(outcomes, verdicts, strict=True)
        if verdict.disable_reason
    }
    for endpoint in failing:
        if _tries_since(endpoint) >= DISABLE_TRIES:
            one = (endpoint.pk, asked[endpoint.pk])
            reasons.setdefault(one, "Nothing but failures for five days.")
    # After the commit: it locks the client's feed, which comes before any delivery.
    for (endpoint_id, url), reason in reasons.items():
        disable_endpoint(endpoint_id, reason=reason, url=url)


def _tries_since(endpoint: WebhookEndpoint) -> int:
    tries = DeliveryAttempt.objects.filter(
        delivery__endpoint=endpoint, attempted_at__gte=endpoint.failing_since
    )
    return tries[:DISABLE_TRIES].count()
