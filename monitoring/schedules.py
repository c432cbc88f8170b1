"""One editable beat entry per website: when it is crawled."""

from __future__ import annotations

import datetime as dt
import json
import zlib

from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from monitoring.models import Website

TASK = "monitoring.tasks.crawl_website"


def create_schedule(website: Website) -> PeriodicTask:
    """Off until the website is active. The minute is spread over the hour by the
    website's id, so that a thousand shops do not start together."""
    spread = zlib.crc32(website.pk.bytes)
    return PeriodicTask.objects.create(
        name=f"website {website.pk}",
        description=website.name[:200],
        task=TASK,
        args=json.dumps([str(website.pk)]),
        crontab=_crontab(website.crawl_frequency_minutes, spread, website.client.timezone),
        enabled=False,
        expire_seconds=300,
    )


def change_frequency(website: Website) -> None:
    """Follow ``crawl_frequency_minutes``; an operator's own schedule is replaced."""
    task = website.periodic_task
    if task is None:
        return
    spread = zlib.crc32(website.pk.bytes)
    task.crontab = _crontab(website.crawl_frequency_minutes, spread, website.client.timezone)
    task.interval = task.solar = task.clocked = None
    task.save()


def switch(website: Website, *, on: bool) -> None:
    task = website.periodic_task
    if task is not None and task.enabled != on:
        task.enabled = on
        # save() and not update(): beat is told by the model's own signal.
        task.save()


def slot_of(website: Website, now: dt.datetime) -> dt.datetime:
    """The moment a scheduled run stands for: two beats, or a doubled message, mean one.

    Cron runs at most once a minute; an interval once in its length.
    """
    task = website.periodic_task
    seconds = 60.0
    if task is not None and task.interval is not None:
        seconds = max(1.0, task.interval.schedule.run_every.total_seconds())
    stamp = now.timestamp()
    return dt.datetime.fromtimestamp(stamp - stamp % seconds, tz=dt.UTC)


def next_run_at(website: Website) -> dt.datetime | None:
    """When beat will run it next; None while it is off."""
    task = website.periodic_task
    if task is None or not task.enabled:
        return None
    last = task.last_run_at or task.date_changed or timezone.now()
    remaining: dt.timedelta = task.schedule.remaining_estimate(last)
    return timezone.now() + remaining


def _crontab(minutes: int, spread: int, zone: str) -> CrontabSchedule:
    every = max(1, minutes // 60)
    hours = range(spread // 60 % every, 24, every)
    schedule, _ = CrontabSchedule.objects.get_or_create(
        minute=str(spread % 60),
        hour=",".join(str(hour) for hour in hours),
        day_of_week="*",
        day_of_month="*",
        month_of_year="*",
        timezone=zone,
    )
    return schedule
