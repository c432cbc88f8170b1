from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings


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
