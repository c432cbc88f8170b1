from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from obsrv.environment import Environment


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("OBSRV_PORT", "abc", "OBSRV_PORT must be a whole number, not 'abc'."),
        ("OBSRV_PORT", "99999", "OBSRV_PORT must be a whole number from 1 to 65535, not '99999'."),
        ("OBSRV_DEBUG", "maybe", "OBSRV_DEBUG must be true or false, not 'maybe'."),
        (
            "DATABASE_URL",
            "x",
            "DATABASE_URL must be a URL that starts with postgresql://, not 'x'.",
        ),
        ("LOG_FORMAT", "xml", "LOG_FORMAT must be one of console, json, not 'xml'."),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_sentence(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    own = {"OBSRV_VAR_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "obsrv.settings"}
    done = subprocess.run(
        [sys.executable, "manage.py", "version"],
        cwd=settings.BASE_DIR,
        env=os.environ | own | {"OBSRV_READ_ENV_FILE": "false", name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", sentence)


@pytest.mark.parametrize(
    ("text", "pauses"), [("", [1, 2]), ("short", [1, 2]), ("5", [5]), ("5, 300", [5, 300])]
)
def test_pauses_are_a_list_or_the_name_of_one(
    monkeypatch: pytest.MonkeyPatch, text: str, pauses: list[int]
) -> None:
    monkeypatch.setenv("PAUSES", text)
    assert Environment().pauses("PAUSES", {"short": [1, 2]}, default="short") == pauses


@pytest.mark.parametrize("text", ["long", "5,,6", "5,-1", "0", "5;6"])
def test_pauses_that_make_no_sense_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PAUSES", text)
    with pytest.raises(ImproperlyConfigured, match="PAUSES must be one of short, or seconds"):
        Environment().pauses("PAUSES", {"short": [1, 2]}, default="short")
