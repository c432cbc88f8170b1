"""The schedules Obsrv needs to live, made when missing and never changed afterwards:
an operator may slow, edit or switch off each of them in the console."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask


@dataclass(frozen=True)
class Needed:
    name: str
    task: str
    description: str
    # A wake-up that was not taken by then is stale: the next one says the same.
    expire_seconds: int
    every_seconds: int = 0
    daily_at: tuple[int, int] = (0, 0)


RETENTION = "obsrv: retention"
NEEDED = (
    Needed(
        "obsrv: crawl sweep",
        "crawling.tasks.sweep",
        "Wakes crawl workers while pages are due.",
        expire_seconds=5,
        every_seconds=5,
    ),
    Needed(
        "obsrv: lease sweep",
        "crawling.tasks.return_expired_leases",
        "Returns the work of workers that died.",
        expire_seconds=15,
        every_seconds=15,
    ),
    Needed(
        "obsrv: recurring URLs",
        "crawling.tasks.queue_recurring",
        "Queues the stand-alone URLs whose time has come round.",
        expire_seconds=15,
        every_seconds=15,
    ),
    Needed(
        "obsrv: delivery sweep",
        "notifications.tasks.sweep_deliveries",
        "Wakes delivery workers while webhooks are due.",
        expire_seconds=5,
        every_seconds=5,
    ),
    Needed(
        "obsrv: daily summaries",
        "notifications.tasks.publish_summaries",
        "Tells every client in its morning what the day before brought.",
        expire_seconds=900,
        every_seconds=900,
    ),
    Needed(
        "obsrv: heartbeat",
        "obsrv.tasks.heartbeat",
        "Tells /health/ready that beat and a worker live.",
        expire_seconds=20,
        every_seconds=20,
    ),
    Needed(
        "obsrv: partitions",
        "obsrv.tasks.make_partitions",
        "Makes the months of the price history ahead of time.",
        expire_seconds=3600,
        daily_at=(2, 50),
    ),
    Needed(
        RETENTION,
        "monitoring.tasks.apply_retention",
        "Keeps monthly statistics and removes history past each website's retention.",
        expire_seconds=3600,
        daily_at=(3, 0),
    ),
    Needed(
        "obsrv: purge pages",
        "crawling.tasks.purge_pages",
        "Removes stored pages that prove nothing any more.",
        expire_seconds=3600,
        daily_at=(3, 40),
    ),
    Needed(
        "obsrv: probe failed websites",
        "monitoring.tasks.probe_failed",
        "Looks whether websites that were given up can be crawled again.",
        expire_seconds=3600,
        daily_at=(5, 10),
    ),
    Needed(
        "obsrv: purge",
        "obsrv.tasks.purge",
        "Removes expired secrets, answers, deliveries and tasks.",
        expire_seconds=3600,
        daily_at=(3, 20),
    ),
)


def ensure_schedules() -> list[str]:
    """Make the missing schedules; answers the names of those it made."""
    return [needed.name for needed in NEEDED if _ensure(needed)]


@transaction.atomic
def _ensure(needed: Needed) -> bool:
    if PeriodicTask.objects.filter(name=needed.name).exists():
        return False
    _, made = PeriodicTask.objects.get_or_create(
        name=needed.name,
        defaults={
            "task": needed.task,
            "description": needed.description,
            "expire_seconds": needed.expire_seconds,
            **_when(needed),
        },
    )
    return bool(made)


def _when(needed: Needed) -> dict[str, object]:
    if needed.every_seconds:
        return {"interval": _interval(needed.every_seconds)}
    hour, minute = needed.daily_at
    crontab, _ = CrontabSchedule.objects.get_or_create(hour=hour, minute=minute, timezone="UTC")
    return {"crontab": crontab}


def _interval(seconds: int) -> object:
    # Intervals are not unique in the table, and an operator may have made a twin.
    wanted = {"every": seconds, "period": IntervalSchedule.SECONDS}
    found = IntervalSchedule.objects.filter(**wanted).first()
    return found or IntervalSchedule.objects.create(**wanted)
