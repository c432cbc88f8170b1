from __future__ import annotations

import time
from typing import Any

import redis
import structlog
from celery import Task, shared_task
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from common.partitions import rows_in_default
from monitoring import history

log = structlog.get_logger(__name__)

HEARTBEAT = "obsrv:heartbeat:{}"
HEARTBEAT_KEPT_SECONDS = 300
# By name: each is the affair of its own layer.
PURGES = (
    "accounts.webhook_secrets.drop_expired",
    "accounts.logins.forget_old",
    "common.drf.idempotency.purge_idempotent",
    "notifications.retention.purge_deliveries",
    "notifications.retention.purge_notices",
    "notifications.retention.purge_events",
    "notifications.retention.forget_expired_secrets",
    "crawling.tasks.purge",
    "monitoring.history.delete_orphaned",
    "monitoring.campaigns.announce_forgotten",
)


@shared_task(bind=True)
def heartbeat(self: Task[Any, Any]) -> None:
    """Says that a worker works; sent by beat, and soon stale, also that beat does."""
    now = int(time.time())
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        server.set(HEARTBEAT.format("worker"), now, ex=HEARTBEAT_KEPT_SECONDS)
        if (self.request.headers or {}).get("periodic_task_name"):
            server.set(HEARTBEAT.format("beat"), now, ex=HEARTBEAT_KEPT_SECONDS)


@shared_task
def make_partitions() -> list[str]:
    stray = rows_in_default(history.TABLE)
    if stray:
        log.error("history rows were outside every month: see that beat runs", rows=stray)
    return history.make_months()


@shared_task
def purge() -> None:
    """Remove what has expired; one that fails must not keep the others from it."""
    for name in PURGES:
        try:
            import_string(name)()
        except Exception:
            log.exception("purge failed", purge=name)
            # A connection that broke would make all the others fail too.
            connection.close_if_unusable_or_obsolete()
