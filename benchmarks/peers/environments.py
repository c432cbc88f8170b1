"""What others have built, each in an environment of its own, never in ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.conf import settings

PACKAGES = {
    "scrapy": (
        "scrapy",
        "extruct",
        "price-parser",
        "psycopg[binary]",
        "uvloop",
        # What our extractor needs, where Scrapy is given that.
        "selectolax",
        "orjson",
    ),
    "changedetection": ("changedetection.io",),
}
INSTALL_SECONDS = 900


class Unavailable(Exception):
    """The peer cannot be installed here; the reason is told beside the figures."""


def python_of(peer: str) -> Path:
    """The interpreter of the peer's environment, made when there is none."""
    home = Path(settings.BASE_DIR) / "var" / "bench" / "peers" / peer
    python, marker = home / "bin" / "python", home / "complete"
    if not marker.exists():
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        _run(str(python), "-m", "pip", "install", "--quiet", *PACKAGES[peer])
        marker.touch()
    return python


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1] if done.stderr else "pip failed")


def version_of(python: Path, package: str) -> str:
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip()
