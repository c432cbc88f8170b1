"""Is this process alive, and is everything it needs there?"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import time
from collections.abc import Callable

import redis
from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from common import partitions
from common.drf import problems
from monitoring import history
from obsrv import queues, tasks

# Two of the beats, which come every 20 s, and a little.
HEARTBEAT_MAX_SECONDS = 45
HEARTBEATS = ("beat", "worker")
TIMEOUT_SECONDS = 1

log = logging.getLogger(__name__)


class NotReady(Exception):
    """A check failed; the text says why."""


@require_safe
@never_cache
def live(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    reasons = {name: text for name, check in CHECKS.items() if (text := failure_of(check))}
    if not reasons:
        return JsonResponse({"status": "ready", "checks": dict.fromkeys(CHECKS, "ok")})
    detail = "Not ready: " + "; ".join(f"{name}: {text}" for name, text in reasons.items())
    # A state that is asked for, not a failure of ours: nothing to alarm anybody about.
    log.info(detail)
    response = problems.answer(
        problems.Problem(
            503,
            "SERVICE_UNAVAILABLE",
            detail,
            [{"attr": n, "code": "not_ready", "detail": text} for n, text in reasons.items()],
            {"Retry-After": str(problems.RETRY_SECONDS), "Cache-Control": "no-store"},
        )
    )
    # Django would log it as an error.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def forget_heartbeats() -> None:
    """What ran before must not pass for what runs now."""
    with contextlib.suppress(redis.RedisError), _redis() as server:
        server.delete(*(tasks.HEARTBEAT.format(name) for name in HEARTBEATS))


def failure_of(check: Callable[[], None]) -> str | None:
    try:
        check()
    except NotReady as error:
        return str(error)
    except Error:
        return "the database does not answer"
    except redis.RedisError:
        return "redis does not answer"
    return None


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _redis() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS
    )


def _broker() -> None:
    with _redis() as server:
        server.ping()


def _migrations() -> None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise NotReady(f"{len(plan)} migrations are not applied: run manage.py migrate")


def _partitions() -> None:
    now = timezone.now()
    for moment in (now, now + dt.timedelta(days=31)):
        if not partitions.has_month(history.TABLE, moment):
            raise NotReady(f"{history.TABLE} has no partition for {moment:%Y-%m}")


def _queues() -> None:
    try:
        missing = queues.unattended_lately()
    except queues.BrokerAway:
        raise NotReady("the broker does not answer") from None
    if missing:
        raise NotReady(f"no worker takes messages of {', '.join(missing)}")


def _heartbeat(name: str) -> Callable[[], None]:
    def check() -> None:
        with _redis() as server:
            seen = server.get(tasks.HEARTBEAT.format(name))
        if not isinstance(seen, bytes):
            raise NotReady("not running (no heartbeat)")
        age = time.time() - float(seen)
        if age > HEARTBEAT_MAX_SECONDS:
            raise NotReady(f"not running (last heartbeat {age:.0f} s ago)")

    return check


CHECKS: dict[str, Callable[[], None]] = {
    "database": _database,
    "redis": _broker,
    "migrations": _migrations,
    "partitions": _partitions,
    **{name: _heartbeat(name) for name in HEARTBEATS},
    "queues": _queues,
}
