from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from django_celery_beat.models import PeriodicTask, PeriodicTasks
from pytest_django import Settings

from accounts.models import AuditEntry
from monitoring.models import Website
from tests.factories.accounts import api_for
from tests.factories.crawling import JobFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(website: Website) -> str:
    return f"/api/v1/websites/{website.pk}/schedule"


def test_the_default_is_shown_in_words(reader: Any, path: str) -> None:
    body = reader.get(path).json()
    assert body["description"].startswith("At ")
    assert (body["timezone"], body["enabled"], body["every_seconds"]) == ("UTC", True, None)
    assert body["next_run_at"]


def test_a_cron_line_is_taken_with_its_time_zone(api: Any, path: str) -> None:
    asked = {"cron": "30 9 * * 1-5", "timezone": "Europe/Berlin"}
    body = api.put(path, asked).json()
    assert body | asked == body
    assert body["description"] == "At 09:30, Monday through Friday (Europe/Berlin)"
    assert api.get(path).json() == body


@pytest.mark.parametrize(
    ("asked", "seconds", "words"),
    [
        ({"every_minutes": 90}, 5400, "Every 90 minutes"),
        ({"every_minutes": 60}, 3600, "Every hour"),
        ({"every_minutes": 2880}, 172800, "Every 2 days"),
        ({"every_seconds": 1000}, 1000, "Every 1000 seconds"),
    ],
)
def test_an_interval_is_taken(
    api: Any, path: str, asked: dict[str, int], seconds: int, words: str
) -> None:
    body = api.put(path, asked).json()
    assert (body["every_seconds"], body["cron"], body["description"]) == (seconds, None, words)
    assert body["every_minutes"] == (None if seconds % 60 else seconds // 60)


@pytest.mark.parametrize(
    "body",
    [
        {"every_seconds": 899},
        {"every_minutes": 14},
        {"cron": "*/10 * * * *"},
        {"cron": "0,50 * * * *"},
    ],
)
def test_clients_keep_a_distance_that_operators_may_shorten(
    api: Any, path: str, body: dict[str, Any], settings: Settings
) -> None:
    answer = api.put(path, body)
    assert answer.status_code == 400
    assert "15 minutes" in answer.json()["detail"]
    assert api_for(None).put(path, body).status_code == 200
    settings.SCHEDULE_MIN_SECONDS = 60
    assert api.put(path, body).status_code == 200


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0,50 8 * * *", "5 * * * *"])
def test_a_cron_line_with_enough_between_is_taken(api: Any, path: str, cron: str) -> None:
    assert api.put(path, {"cron": cron}).status_code == 200


def test_the_last_run_by_schedule_is_known_before_beat_notes_it(
    api: Any, path: str, website: Website
) -> None:
    slot = timezone.now() - dt.timedelta(hours=5, minutes=10)
    JobFactory.create(client=website.client, website_id=website.pk, kind="monitor", slot_at=slot)
    body = api.put(path, {"every_minutes": 60}).json()
    assert dt.datetime.fromisoformat(body["last_run_at"]) == slot
    due = dt.datetime.fromisoformat(body["next_run_at"]) - timezone.now()
    assert dt.timedelta(minutes=49) < due < dt.timedelta(minutes=51)


def test_deleting_goes_back_to_the_frequency(api: Any, path: str) -> None:
    default = api.get(path).json()["description"]
    api.put(path, {"every_minutes": 90})
    answer = api.delete(path)
    assert (answer.status_code, answer.json()["description"]) == (200, default)
    told = AuditEntry.objects.filter(verb="schedule").order_by("created_at")
    assert [entry.after["schedule"] for entry in told] == ["Every 90 minutes", default]


def test_beat_hears_of_an_edit_without_a_restart(api: Any, path: str) -> None:
    before = PeriodicTasks.last_change()
    api.put(path, {"every_minutes": 90})
    assert PeriodicTasks.last_change() > before


def test_a_deleted_entry_is_made_anew(api: Any, path: str) -> None:
    PeriodicTask.objects.all().delete()
    assert api.get(path).json()["description"] == "No schedule"
    body = api.put(path, {"every_minutes": 90}).json()
    assert (body["description"], body["enabled"]) == ("Every 90 minutes", True)


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "cron"),
        ({"cron": "* * * * *", "every_minutes": 5}, "cron"),
        ({"cron": "* * * * *"}, "cron"),
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "* * * * funday"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "*/0 * * * *"}, "cron"),
        ({"cron": "x" * 601}, "cron"),
        ({"cron": "0 0 * * *", "timezone": "Mars/Olympus"}, "timezone"),
        ({"every_minutes": 0}, "every_minutes"),
        ({"every_minutes": 10**9}, "every_minutes"),
        ({"every_seconds": 9}, "every_seconds"),
        ({"interval": 5}, "interval"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    api: Any, path: str, body: dict[str, Any], attr: str
) -> None:
    before = api.get(path).json()["description"]
    answer = api.put(path, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    assert api.get(path).json()["description"] == before


def test_only_its_own_client_with_a_writing_key_may(
    client: Browser, reader: Any, stranger: Any, path: str
) -> None:
    assert client.get(path).status_code == 401
    assert reader.put(path, {"every_minutes": 5}).status_code == 403
    assert reader.delete(path).status_code == 403
    for answer in (
        stranger.get(path),
        stranger.put(path, {"every_minutes": 5}),
        stranger.delete(path),
    ):
        assert answer.status_code == 404
