from __future__ import annotations

import datetime as dt

import pytest
import time_machine
from django_celery_beat.models import IntervalSchedule

from accounts.audit import SYSTEM
from common.errors import Invalid
from monitoring import runs, schedules
from monitoring.models import Website
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def website() -> Website:
    return WebsiteFactory.create(active=True)


@pytest.mark.parametrize(("minutes", "times"), [(360, 4), (480, 3), (720, 2), (1440, 1)])
def test_the_frequency_becomes_that_many_times_a_day(minutes: int, times: int) -> None:
    website = WebsiteFactory.create(crawl_frequency_minutes=minutes)
    assert schedules.describe(website).count(":") == times


def test_the_next_run_is_the_next_slot_of_the_cron_line(website: Website) -> None:
    with time_machine.travel(dt.datetime(2026, 3, 2, 8, 0, tzinfo=dt.UTC), tick=False):
        schedules.set_schedule(website, cron="30 9 * * *", zone="Europe/Berlin", actor=SYSTEM)
        due = dt.datetime(2026, 3, 2, 8, 30, tzinfo=dt.UTC)
        assert schedules.next_run_at(website) == due


def test_two_websites_with_the_same_interval_share_its_row() -> None:
    one, two = WebsiteFactory.create_batch(2)
    for website in (one, two):
        schedules.set_schedule(website, every_seconds=90, actor=SYSTEM)
    assert IntervalSchedule.objects.filter(every=90).count() == 1


def test_an_invalid_line_keeps_the_old_one(website: Website) -> None:
    before = schedules.describe(website)
    with pytest.raises(Invalid):
        schedules.set_schedule(website, cron="nonsense", actor=SYSTEM)
    website = Website.objects.get(pk=website.pk)
    assert schedules.describe(website) == before


def test_the_shops_of_a_suspended_client_rest(website: Website) -> None:
    ProductFactory.create(website=website, approved=True)
    with time_machine.travel(website.created_at + dt.timedelta(days=2), tick=False):
        website.client.is_active = False
        website.client.save()
        assert runs.run_scheduled(website.pk) is None
        website.client.is_active = True
        website.client.save()
        assert runs.run_scheduled(website.pk) is not None
