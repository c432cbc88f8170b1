from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from monitoring import history
from obsrv.schedules import ensure_schedules
from tests.factories.accounts import ClientFactory
from tests.factories.monitoring import HistoryFactory

pytestmark = pytest.mark.django_db


def examine() -> dict[str, dict[str, Any]]:
    out = io.StringIO()
    with contextlib.suppress(CommandError):
        call_command("doctor", "--json", stdout=out)
    return {finding["subject"]: finding for finding in json.loads(out.getvalue())["findings"]}


def test_a_sound_installation_is_called_sound() -> None:
    ensure_schedules()
    found = examine()
    sound = {name for name, finding in found.items() if finding["verdict"] == "ok"}
    assert sound >= {"services", "database", "migrations", "clock", "broker", "keys", "schedules"}
    assert all(f["remedy"] for f in found.values() if f["verdict"] != "ok")


def test_a_lost_encryption_key_fails_and_says_what_to_do(settings: Settings) -> None:
    ClientFactory.create()
    settings.FIELD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    out = io.StringIO()
    with pytest.raises(CommandError, match="keys"):
        call_command("doctor", stdout=out)
    assert "Add the old key" in out.getvalue()


def test_open_private_networks_are_warned_of(settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["10.0.0.0/8"]
    assert examine()["egress"]["verdict"] == "warning"


def test_missing_schedules_are_warned_of() -> None:
    assert "obsrv: heartbeat" in examine()["schedules"]["text"]


def test_a_silent_broker_fails_its_own_questions_only(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = examine()
    assert found["broker"]["verdict"] == "failed"
    assert found["database"]["verdict"] == "ok"


def test_checks_that_found_no_month_are_warned_of_until_their_month_is_made() -> None:
    history.make_months()
    HistoryFactory.create(crawl_timestamp=timezone.now() + dt.timedelta(days=200))
    warned = examine()["partitions"]
    assert (warned["verdict"], "ensure_schedules" in warned["remedy"]) == ("warning", True)
    call_command("ensure_schedules", stdout=io.StringIO())
    assert "outside" not in examine()["partitions"]["text"]
