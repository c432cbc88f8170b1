from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

from obsrv.logs import redact

KEY = "obsrv_live_c4n4ryc4n4ryc4n4ry"
SECRET = "whsec_c4n4ryc4n4ryc4n4ry="

# In a process of its own: the configuration is that of all loggers.
LOGGING = f"""
import logging, structlog
from obsrv.logs import logging_config
logging_config(STYLE, "INFO")
key, secret = {KEY!r}, {SECRET!r}
try:
    raise ValueError("no such key: " + key)
except ValueError:
    logging.getLogger("a").exception("failed with %s", secret)
    logging.getLogger("b").error("also", exc_info=True, extra={{"key": key}})
    structlog.get_logger("c").exception("and")
structlog.get_logger("d").warning("nested", body={{"rows": [{{"secret": secret}}, (key,)]}})
"""


@pytest.mark.parametrize("style", ["json", "console"])
def test_no_style_of_log_line_tells_a_secret(style: str) -> None:
    script = LOGGING.replace("STYLE", repr(style))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout + done.stderr
    assert "c4n4ry" not in said
    assert said.count("no such key: obsrv_live_") == 3
    assert "nested" in said


def test_secrets_go_and_everything_else_stays() -> None:
    event = {
        "event": f"key {KEY}",
        "count": 3,
        "ok": True,
        "nothing": None,
        "deep": {"list": [{"secret": SECRET}, ("plain", KEY)]},
        "error": ValueError(SECRET),
    }
    assert redact(None, "info", event) == {
        "event": "key obsrv_live_…",
        "count": 3,
        "ok": True,
        "nothing": None,
        "deep": {"list": [{"secret": "whsec_…"}, ["plain", "obsrv_live_…"]]},
        "error": "whsec_…",
    }
