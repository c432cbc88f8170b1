"""When a channel's people are told: now, with the hour, with the day, and never in quiet hours."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from notifications.models import Channel

DAILY_AT = dt.time(8)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)


def zone_of(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return dt.UTC


def due_at(channel: Channel, now: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    due = now
    if channel.digest == Channel.Digest.HOURLY:
        due = _next_hour(now, zone)
    elif channel.digest == Channel.Digest.DAILY:
        due = _next(now, DAILY_AT, zone)
    return after_quiet(channel, due, zone)


def after_quiet(channel: Channel, moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """The moment itself, or the end of the quiet hours that it lies in."""
    start, end = channel.quiet_from, channel.quiet_until
    if start is None or end is None or start == end:
        return moment
    at = moment.astimezone(zone).time()
    quiet = start <= at < end if start < end else at >= start or at < end
    return _next(moment, end, zone) if quiet else moment


def _next_hour(now: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    local = now.astimezone(zone)
    begun = dt.timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return now.astimezone(dt.UTC) - begun + HOUR


def _next(now: dt.datetime, at: dt.time, zone: dt.tzinfo) -> dt.datetime:
    """The next moment when clocks there show this time; in autumn they may show it twice."""
    today = now.astimezone(zone).date()
    moments = (
        dt.datetime.combine(day, at.replace(fold=fold), tzinfo=zone).astimezone(dt.UTC)
        for day in (today, today + DAY)
        for fold in (0, 1)
    )
    return next(moment for moment in moments if moment > now)
