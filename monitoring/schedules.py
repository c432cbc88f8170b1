"""One editable beat entry per website: when it is crawled."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import zlib
import zoneinfo
from typing import Any

from cron_descriptor import Options, get_description
from cron_descriptor.Exception import FormatException, MissingFieldException, WrongArgumentException
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from accounts import audit
from accounts.audit import Actor
from common.errors import Invalid
from crawling.models import CrawlJob
from monitoring.models import Website

TASK = "monitoring.tasks.crawl_website"
CRON_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
SHORTEST_SECONDS = 10
LONGEST_SECONDS = 31 * 24 * 3600
DAY = dt.timedelta(days=1)
# Slots to go through after an outage before giving up on the exact one.
MOST_SLOTS = 20_000
UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


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
    spread = zlib.crc32(website.pk.bytes)
    _put(
        website,
        crontab=_crontab(website.crawl_frequency_minutes, spread, website.client.timezone),
    )


@transaction.atomic
def reset_schedule(website: Website, *, actor: Actor) -> None:
    """Back to what ``crawl_frequency_minutes`` says."""
    before = describe(website)
    change_frequency(website)
    _record(website, actor, before)


def set_schedule(
    website: Website,
    *,
    actor: Actor,
    cron: str | None = None,
    every_minutes: int | None = None,
    every_seconds: int | None = None,
    zone: str | None = None,
    shortest: int = SHORTEST_SECONDS,
) -> None:
    """Crawl by a cron line or at an interval, with at least ``shortest`` seconds between
    two runs; beat follows without a restart."""
    given = [value for value in (cron, every_minutes, every_seconds) if value is not None]
    if len(given) != 1:
        raise Invalid("Give exactly one of cron, every_minutes and every_seconds.", attr="cron")
    before = describe(website)
    with transaction.atomic():
        if cron is not None:
            line = _checked_cron(cron, zone or website.client.timezone)
            _check_gap(line, shortest)
            _put(website, crontab=_find(line))
        else:
            _put(website, interval=_find(_checked_interval(every_minutes, every_seconds, shortest)))
        _record(website, actor, before)


def describe(website: Website) -> str:
    """The schedule in words."""
    task = website.periodic_task
    return "No schedule" if task is None else words_of(task)


def words_of(task: PeriodicTask) -> str:
    if task.interval is not None:
        return _interval_in_words(task.interval)
    return _cron_in_words(task.crontab) if task.crontab is not None else str(task.scheduler)


def cron_of(website: Website) -> str | None:
    task = website.periodic_task
    if task is None or task.crontab is None:
        return None
    return " ".join(getattr(task.crontab, name) for name in CRON_FIELDS)


def every_seconds_of(website: Website) -> int | None:
    task = website.periodic_task
    if task is None or task.interval is None:
        return None
    return seconds_of(task.interval)


def every_minutes_of(website: Website) -> int | None:
    """None where the interval is not one of whole minutes."""
    minutes, rest = divmod(every_seconds_of(website) or 0, 60)
    return None if rest else minutes or None


def seconds_of(interval: IntervalSchedule) -> int:
    return int(interval.schedule.run_every.total_seconds())


def interval_of(seconds: int) -> IntervalSchedule:
    """The row of this length, made when there is none."""
    return _find(interval_like(seconds))


def zone_of(website: Website) -> str:
    task = website.periodic_task
    zone = task.crontab.timezone if task is not None and task.crontab is not None else "UTC"
    return str(zone)


def switch(website: Website, *, on: bool) -> None:
    task = website.periodic_task
    if task is not None and task.enabled != on:
        task.enabled = on
        # save() and not update(): beat is told by the model's own signal.
        task.save()


def slot_of(website: Website, now: dt.datetime, last: dt.datetime | None) -> dt.datetime | None:
    """The due moment a scheduled run stands for; None when the last one stands for it.

    Taken from the schedule and not from the clock: two beats, or one message that comes
    twice, mean the same moment however far apart they are worked on. Slots missed in an
    outage are not made up for.
    """
    schedule = website.periodic_task.schedule if website.periodic_task else None
    if schedule is None:
        return None
    # Whole days since it was registered, less one: the same anchor for whoever asks.
    due = last or website.created_at + ((now - website.created_at) // DAY - 1) * DAY
    found = None
    for _ in range(MOST_SLOTS):
        due = now + schedule.remaining_estimate(due)
        if due > now:
            return found
        found = due
    return found


def with_last_slot(websites: QuerySet[Any]) -> QuerySet[Any]:
    """For lists: what ``last_run_at`` and ``next_run_at`` would else ask row by row."""
    rows: QuerySet[Any] = websites.annotate(last_slot_at=Subquery(_slots(OuterRef("pk"))[:1]))
    return rows


def last_run_at(website: Website) -> dt.datetime | None:
    """When it ran by schedule; beat writes its own note of that only now and then."""
    task = website.periodic_task
    if hasattr(website, "last_slot_at"):
        slot = website.last_slot_at
    else:
        slot = _slots(website.pk).first()
    told = [moment for moment in (task.last_run_at if task else None, slot) if moment]
    return max(told, default=None)


def next_run_at(website: Website) -> dt.datetime | None:
    """When beat will run it next; None while it is off."""
    task = website.periodic_task
    if task is None or not task.enabled:
        return None
    return next_run_of(task, last_run_at(website))


def next_run_of(task: PeriodicTask, last: dt.datetime | None = None) -> dt.datetime | None:
    if not task.enabled or task.scheduler is None:
        return None
    now = timezone.now()
    if task.interval is not None:
        length = task.interval.schedule.run_every
        since = now - (last or task.last_run_at or task.date_changed or now)
        due = now + length - since % length
    else:
        due = now + task.schedule.remaining_estimate(now)
    # Two readings of the clock lie between asking and adding: whole seconds hide them.
    moment: dt.datetime = due + dt.timedelta(milliseconds=500)
    return moment.replace(microsecond=0)


def _slots(website_id: Any) -> QuerySet[CrawlJob, Any]:
    """The moments it ran for by schedule, the last one first."""
    rows = CrawlJob.objects.filter(
        website_id=website_id, kind=CrawlJob.Kind.MONITOR, slot_at__isnull=False
    )
    return rows.order_by("-slot_at").values_list("slot_at", flat=True)


def _crontab(minutes: int, spread: int, zone: str) -> CrontabSchedule:
    every = max(1, minutes // 60)
    hours = range(spread // 60 % every, 24, every)
    wanted = CrontabSchedule(
        minute=str(spread % 60),
        hour=",".join(str(hour) for hour in hours),
        timezone=zone,
    )
    return _find(wanted)


def _checked_cron(cron: str, zone: str) -> CrontabSchedule:
    parts = cron.split()
    if len(parts) != len(CRON_FIELDS):
        raise Invalid(
            "Give five fields: minute, hour, day of month, month, day of week.", attr="cron"
        )
    if zone not in zoneinfo.available_timezones():
        raise Invalid("Must be an IANA time zone such as Europe/Berlin.", attr="timezone")
    wanted = CrontabSchedule(**dict(zip(CRON_FIELDS, parts, strict=True)), timezone=zone)
    try:
        wanted.clean_fields()
        # A day that never comes, such as 31 February, is only found by looking for it.
        wanted.schedule.remaining_estimate(timezone.now())
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        attr = "timezone" if name == "timezone" else "cron"
        raise Invalid(f"{name.replace('_', ' ').capitalize()}: {texts[0]}", attr=attr) from error
    except (ValueError, RuntimeError) as error:
        raise Invalid(f"This never comes round: {error}", attr="cron") from error
    return wanted


def _check_gap(line: CrontabSchedule, shortest: int) -> None:
    """Within an hour, and from the last run of one hour to the first of the next."""
    minutes, hours = sorted(line.schedule.minute), line.schedule.hour
    gaps = [later - earlier for earlier, later in itertools.pairwise(minutes)]
    if any((hour + 1) % 24 in hours for hour in hours):
        gaps.append(60 - minutes[-1] + minutes[0])
    if gaps and min(gaps) * 60 < shortest:
        raise Invalid(
            f"Between two runs must be at least {_length_in_words(shortest)}.", attr="cron"
        )


def _checked_interval(
    minutes: int | None, seconds: int | None, shortest: int = SHORTEST_SECONDS
) -> IntervalSchedule:
    length = seconds if seconds is not None else 60 * (minutes or 0)
    if not shortest <= length <= LONGEST_SECONDS:
        attr = "every_seconds" if seconds is not None else "every_minutes"
        raise Invalid(f"Must be from {_length_in_words(shortest)} to 31 days.", attr=attr)
    return interval_like(length)


def interval_like(length: int) -> IntervalSchedule:
    if length % 60:
        return IntervalSchedule(every=length, period=IntervalSchedule.SECONDS)
    return IntervalSchedule(every=length // 60, period=IntervalSchedule.MINUTES)


def _find(wanted: Any) -> Any:
    """The row that says the same, or this one. Beat's tables allow twins."""
    fields = wanted._meta.concrete_fields
    values = {f.name: getattr(wanted, f.name) for f in fields if not f.primary_key}
    found = type(wanted).objects.filter(**values).first()
    if found is None:
        wanted.save()
    return found or wanted


def _put(website: Website, **schedule: Any) -> None:
    """Give the website's entry this schedule; one that an operator deleted is made anew."""
    task = website.periodic_task
    if task is None:
        task = create_schedule(website)
        task.enabled = website.status == Website.Status.ACTIVE
        website.periodic_task = task
        Website.objects.filter(pk=website.pk).update(periodic_task=task)
    task.crontab = task.interval = task.solar = task.clocked = None
    for name, row in schedule.items():
        setattr(task, name, row)
    task.save()


def _record(website: Website, actor: Actor, before: str) -> None:
    # The website's ETag must not outlive a change that it shows.
    website.save(update_fields=["updated_at"])
    audit.record(
        actor,
        "schedule",
        website,
        client_id=website.client_id,
        before={"schedule": before},
        after={"schedule": describe(website)},
    )


def _interval_in_words(interval: IntervalSchedule) -> str:
    return f"Every {_length_in_words(seconds_of(interval)).removeprefix('1 ')}"


def _length_in_words(seconds: int) -> str:
    size, unit = next(((s, u) for s, u in UNITS if seconds >= s and seconds % s == 0), UNITS[-1])
    count = seconds // size
    return f"1 {unit}" if count == 1 else f"{count} {unit}s"


def _cron_in_words(crontab: CrontabSchedule) -> str:
    options = Options()
    options.use_24hour_time_format = True
    line = " ".join(getattr(crontab, name) for name in CRON_FIELDS)
    try:
        words = get_description(line, options)
    except (FormatException, MissingFieldException, WrongArgumentException):
        words = line
    return f"{words} ({crontab.timezone})"
