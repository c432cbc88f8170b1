from __future__ import annotations

import time
from typing import Any

import redis
import structlog
from celery import Task, shared_task
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from common.partitions import ensure_partitions

log = structlog.get_logger(__name__)

HEARTBEAT = "obsrv:heartbeat:{}"
HEARTBEAT_KEPT_SECONDS = 300
HISTORY_TABLE = "monitoring_producthistory"
# By name: each is the affair of its own layer.
PURGES = (
    "accounts.webhook_secrets.drop_expired",
    "common.drf.idempotency.purge_idempotent",
    "notifications.tasks.purge_deliveries",
    "crawling.tasks.purge",
)


@shared_task(bind=True)
def heartbeat(self: Task[Any, Any]) -> None:
    """Says that a worker works; sent by beat, and soon stale, also that beat does."""
    now = int(time.time())
    with redis.Redis.from_url(settings.REDIS_URL) as connection:
        connection.set(HEARTBEAT.format("worker"), now, ex=HEARTBEAT_KEPT_SECONDS)
        if (self.request.headers or {}).get("periodic_task_name"):
            connection.set(HEARTBEAT.format("beat"), now, ex=HEARTBEAT_KEPT_SECONDS)


@shared_task
def make_partitions() -> list[str]:
    return ensure_partitions(HISTORY_TABLE, now=timezone.now())


@shared_task
def purge() -> None:
    """Remove what has expired; one that fails must not keep the others from it."""
    for name in PURGES:
        try:
            import_string(name)()
        except Exception:
            log.exception("purge failed", purge=name)
