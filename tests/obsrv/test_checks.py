from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from pytest_django import Settings

from obsrv import checks


def ids(found: list[Any]) -> list[str]:
    return [message.id for message in found]


def test_the_settings_as_shipped_pass() -> None:
    assert checks.check_consumers() == []
    assert checks.check_secrets() == []


@pytest.mark.parametrize("setting", ["PAGE_CONSUMERS", "JOB_CONSUMERS"])
def test_a_consumer_that_cannot_be_imported_is_an_error(settings: Settings, setting: str) -> None:
    setattr(settings, setting, {"product": "monitoring.intake.no_such_thing"})
    assert ids(checks.check_consumers()) == ["obsrv.E001"]


def test_a_missing_secret_key_is_an_error(settings: Settings) -> None:
    settings.SECRET_KEY = ""
    assert ids(checks.check_secrets()) == ["obsrv.E002"]


@pytest.mark.parametrize("keys", [[], ["too short"]])
def test_missing_or_broken_encryption_keys_are_an_error(
    settings: Settings, keys: list[str]
) -> None:
    settings.FIELD_ENCRYPTION_KEYS = keys
    assert ids(checks.check_secrets()) == ["obsrv.E003"]


def test_openings_in_production_are_warned_of(settings: Settings) -> None:
    settings.PRODUCTION = True
    settings.EGRESS_ALLOWED_NETWORKS = []
    settings.WEBHOOK_ALLOW_HTTP = False
    assert checks.check_openings() == []
    settings.EGRESS_ALLOWED_NETWORKS = ["10.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    assert ids(checks.check_openings()) == ["obsrv.W001", "obsrv.W002"]


def check_deploy(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=settings.BASE_DIR,
        env={**kept, "OBSRV_READ_ENV_FILE": "false", "OBSRV_PRODUCTION": "true", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_production_environment_passes_the_deploy_check() -> None:
    done = check_deploy(
        SECRET_KEY=Fernet.generate_key().decode() * 2,
        FIELD_ENCRYPTION_KEYS=Fernet.generate_key().decode(),
        ALLOWED_HOSTS="obsrv.example.com",
        DATABASE_URL="postgresql://obsrv@db/obsrv",
        REDIS_URL="redis://redis/0",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["SECRET_KEY", "FIELD_ENCRYPTION_KEYS"])
def test_a_production_environment_without_secrets_does_not(missing: str) -> None:
    given = {"SECRET_KEY": "x" * 50, "FIELD_ENCRYPTION_KEYS": Fernet.generate_key().decode()}
    del given[missing]
    servers = {"DATABASE_URL": "postgresql://obsrv@db/obsrv", "REDIS_URL": "redis://redis/0"}
    done = check_deploy(**given, **servers)
    assert done.returncode == 1
    assert missing in done.stderr
