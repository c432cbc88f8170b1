"""Secrets of a self-contained start: made once, kept under ``var/``."""

from __future__ import annotations

import fcntl
import json
import secrets
from pathlib import Path

from cryptography.fernet import Fernet


def load(path: Path) -> dict[str, str]:
    """The generated secrets; the first caller makes them, however many start at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _write(path)
        found: dict[str, str] = json.loads(path.read_text())
    return found


def _write(path: Path) -> None:
    made = {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "FIELD_ENCRYPTION_KEY": Fernet.generate_key().decode(),
    }
    partial = path.with_suffix(".new")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(made))
    partial.rename(path)
