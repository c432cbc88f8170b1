from __future__ import annotations

import io

import pytest
from celery import current_app
from django.core.management import call_command
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from obsrv.schedules import NEEDED, ensure_schedules

pytestmark = pytest.mark.django_db


def test_every_needed_schedule_is_made_once() -> None:
    assert ensure_schedules() == [needed.name for needed in NEEDED]
    assert ensure_schedules() == []
    assert PeriodicTask.objects.filter(name__startswith="obsrv: ").count() == len(NEEDED)


def test_an_operators_edits_survive() -> None:
    ensure_schedules()
    edited = PeriodicTask.objects.get(name="obsrv: purge")
    edited.enabled = False
    edited.crontab = CrontabSchedule.objects.create(minute="7")
    edited.expire_seconds = 99
    edited.save()
    ensure_schedules()
    edited.refresh_from_db()
    assert (edited.enabled, edited.crontab.minute, edited.expire_seconds) == (False, "7", 99)


def test_twin_intervals_made_by_an_operator_do_no_harm() -> None:
    for _ in range(2):
        IntervalSchedule.objects.create(every=5, period=IntervalSchedule.SECONDS)
    assert len(ensure_schedules()) == len(NEEDED)


def test_every_schedule_names_a_real_task_and_lets_its_message_expire() -> None:
    ensure_schedules()
    current_app.loader.import_default_modules()
    for row in PeriodicTask.objects.filter(name__startswith="obsrv: "):
        assert row.task in current_app.tasks
        assert row.expire_seconds


def test_the_command_makes_schedules_and_partitions() -> None:
    out = io.StringIO()
    call_command("ensure_schedules", stdout=out)
    assert "obsrv: heartbeat" in out.getvalue()
    call_command("ensure_schedules", stdout=out)
    assert "Nothing was missing." in out.getvalue()
