"""When a channel's people are told: now, with the hour, with the day, and never in quiet hours."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from notifications.models import Channel

DAILY_AT = dt.time(8)


def zone_of(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return dt.UTC


def due_at(channel: Channel, now: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    local = now.astimezone(zone)
    if channel.digest == Channel.Digest.HOURLY:
        local = local.replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
    elif channel.digest == Channel.Digest.DAILY:
        local = _next(local, DAILY_AT)
    return _after_quiet(channel, local).astimezone(dt.UTC)


def _after_quiet(channel: Channel, local: dt.datetime) -> dt.datetime:
    start, end = channel.quiet_from, channel.quiet_until
    if start is None or end is None or start == end:
        return local
    at = local.time()
    quiet = start <= at < end if start < end else at >= start or at < end
    return _next(local, end) if quiet else local


def _next(local: dt.datetime, at: dt.time) -> dt.datetime:
    today = dt.datetime.combine(local.date(), at, tzinfo=local.tzinfo)
    if today > local:
        return today
    return dt.datetime.combine(local.date() + dt.timedelta(days=1), at, tzinfo=local.tzinfo)
