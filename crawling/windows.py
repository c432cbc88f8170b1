"""Maintenance windows: local times in which a shop is left alone."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from crawling.models import Domain

DAY = dt.timedelta(days=1)


def quiet_until(domain: Domain, now: dt.datetime) -> dt.datetime | None:
    """The end of the window that ``now`` lies in, if it lies in one."""
    start, end = domain.maintenance_start, domain.maintenance_end
    if start is None or end is None:
        return None
    zone = ZoneInfo(domain.maintenance_timezone)
    today = now.astimezone(zone).date()
    # A window that began yesterday may reach over midnight.
    for day in (today - DAY, today):
        opens = dt.datetime.combine(day, start, zone)
        # When clocks go back the end comes twice: the later one keeps the promise.
        closes = dt.datetime.combine(day if start < end else day + DAY, end, zone).replace(fold=1)
        if opens.astimezone(dt.UTC) <= now < closes.astimezone(dt.UTC):
            return closes.astimezone(dt.UTC)
    return None
