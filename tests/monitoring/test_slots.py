"""Each due moment of a schedule makes one run, through clock changes, year ends and outages."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import time_machine

from accounts.audit import SYSTEM
from crawling.models import CrawlJob, CrawlTask
from monitoring import runs, schedules
from monitoring.models import Website
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
BERLIN = ZoneInfo("Europe/Berlin")


def scheduled(cron: str, start: dt.datetime, zone: str = "Europe/Berlin") -> Website:
    with time_machine.travel(start - dt.timedelta(days=3), tick=False):
        website = WebsiteFactory.create(active=True)
        ProductFactory.create(website=website, approved=True)
        schedules.set_schedule(website, cron=cron, zone=zone, actor=SYSTEM)
        return Website.objects.get(pk=website.pk)


def slots_between(
    website: Website, start: dt.datetime, end: dt.datetime, step: int = 30
) -> list[dt.datetime]:
    """Two beats tick every few minutes; every run is over before the next tick."""
    moment = start
    while moment <= end:
        for _beat in range(2):
            with time_machine.travel(moment, tick=False):
                runs.run_scheduled(website.pk)
        CrawlTask.objects.update(status="completed")
        CrawlJob.objects.update(status="success")
        moment += dt.timedelta(minutes=step)
    rows = CrawlJob.objects.filter(slot_at__gte=start, slot_at__lte=end).order_by("slot_at")
    return [slot for slot in rows.values_list("slot_at", flat=True) if slot]


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[arg-type, misc]


def test_every_day_has_one_run_when_clocks_go_forward() -> None:
    # 29 March 2026: 2:00 becomes 3:00, so there is no 2:30.
    start = utc(2026, 3, 28, 0, 0)
    slots = slots_between(scheduled("30 2 * * *", start), start, utc(2026, 3, 31, 0, 0))
    days = [slot.astimezone(BERLIN).date().day for slot in slots]
    assert days == [28, 29, 30]


def test_an_hour_that_comes_twice_has_one_run_of_a_daily_schedule() -> None:
    # 25 October 2026: 3:00 becomes 2:00, so 2:30 comes twice.
    start = utc(2026, 10, 24, 0, 0)
    slots = slots_between(scheduled("30 2 * * *", start), start, utc(2026, 10, 27, 0, 0))
    days = [slot.astimezone(BERLIN).date().day for slot in slots]
    assert days == [24, 25, 26]


@pytest.mark.parametrize("day", [utc(2026, 3, 28), utc(2026, 10, 24)])
def test_hourly_runs_are_an_hour_apart_through_clock_changes(day: dt.datetime) -> None:
    slots = slots_between(scheduled("15 * * * *", day), day, day + dt.timedelta(hours=40), 15)
    assert len(slots) == len(set(slots))
    gaps = {later - earlier for earlier, later in pairwise(slots)}
    assert min(gaps) >= dt.timedelta(hours=1)
    assert max(gaps) <= dt.timedelta(hours=2)


def test_the_year_ends_without_a_run_too_many_or_too_few() -> None:
    start = utc(2026, 12, 31, 0, 0)
    slots = slots_between(scheduled("0 */6 * * *", start, "UTC"), start, utc(2027, 1, 1, 23, 50))
    assert slots == [utc(2026, 12, 31, hour) for hour in (0, 6, 12, 18)] + [
        utc(2027, 1, 1, hour) for hour in (0, 6, 12, 18)
    ]


def test_a_schedule_of_the_first_of_the_year_runs_once() -> None:
    start = utc(2026, 12, 31, 20, 0)
    website = scheduled("0 0 1 1 *", start)
    slots = slots_between(website, start, utc(2027, 1, 1, 2, 0))
    assert slots == [dt.datetime(2027, 1, 1, tzinfo=BERLIN)]


def test_slots_missed_in_an_outage_make_one_run() -> None:
    start = utc(2026, 5, 1, 0, 0)
    website = scheduled("0 * * * *", start, "UTC")
    assert len(slots_between(website, start, utc(2026, 5, 1, 3, 0))) == 4
    # Nothing runs for eight hours; then beat is back.
    slots = slots_between(website, utc(2026, 5, 1, 11, 5), utc(2026, 5, 1, 12, 5))
    assert slots == [utc(2026, 5, 1, 12)]
    assert CrawlJob.objects.filter(slot_at=utc(2026, 5, 1, 11)).count() == 1
    assert (
        CrawlJob.objects.filter(
            slot_at__gt=utc(2026, 5, 1, 3), slot_at__lt=utc(2026, 5, 1, 11)
        ).count()
        == 0
    )


def test_intervals_run_once_per_step_whatever_the_beats_do() -> None:
    start = utc(2026, 5, 1, 0, 0)
    with time_machine.travel(start, tick=False):
        website = WebsiteFactory.create(active=True)
        ProductFactory.create(website=website, approved=True)
        schedules.set_schedule(website, every_minutes=30, actor=SYSTEM)
    slots = slots_between(
        website, start + dt.timedelta(days=2), start + dt.timedelta(days=2, hours=5)
    )
    gaps = {later - earlier for earlier, later in pairwise(slots)}
    assert gaps == {dt.timedelta(minutes=30)}
