from __future__ import annotations

import datetime as dt

import pytest

from crawling.windows import quiet_until
from tests.factories.crawling import DomainFactory


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def quiet(now: str, start: int, end: int, zone: str) -> dt.datetime | None:
    domain = DomainFactory.build(
        maintenance_start=dt.time(start), maintenance_end=dt.time(end), maintenance_timezone=zone
    )
    return quiet_until(domain, utc(now))


@pytest.mark.parametrize(
    ("now", "start", "end", "zone", "until"),
    [
        ("2026-07-01 00:30", 2, 4, "Europe/Berlin", "2026-07-01 02:00"),
        ("2026-07-01 02:00", 2, 4, "Europe/Berlin", None),
        ("2026-06-30 23:59", 2, 4, "Europe/Berlin", None),
        ("2026-01-01 01:30", 2, 4, "Europe/Berlin", "2026-01-01 03:00"),
        ("2026-07-01 23:10", 23, 1, "UTC", "2026-07-02 01:00"),
        ("2026-07-02 00:59", 23, 1, "UTC", "2026-07-02 01:00"),
        ("2026-07-02 01:00", 23, 1, "UTC", None),
        # Clocks go back at 01:00 UTC: local 02:00 to 03:00 comes twice, both are quiet.
        ("2026-10-25 01:30", 1, 3, "Europe/Berlin", "2026-10-25 02:00"),
        ("2026-10-25 01:59", 2, 3, "Europe/Berlin", "2026-10-25 02:00"),
        # Clocks go forward at 01:00 UTC: local 02:00 to 03:00 does not exist.
        ("2026-03-29 01:00", 1, 4, "Europe/Berlin", "2026-03-29 02:00"),
        ("2026-07-01 14:30", 22, 23, "Asia/Tokyo", None),
        ("2026-07-01 13:30", 22, 23, "Asia/Tokyo", "2026-07-01 14:00"),
    ],
)
def test_a_window_is_local_and_ends_when_its_clock_says(
    now: str, start: int, end: int, zone: str, until: str | None
) -> None:
    assert quiet(now, start, end, zone) == (utc(until) if until else None)


def test_without_a_window_no_time_is_quiet() -> None:
    assert quiet_until(DomainFactory.build(), utc("2026-07-01 00:30")) is None
