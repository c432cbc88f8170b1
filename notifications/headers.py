"""Headers of a receiver's own, such as a token of its gateway: kept encrypted, never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from common.errors import Invalid

MAX_HEADERS = 20
NAME_CHARS = 100
VALUE_CHARS = 1024
HIDDEN = "••••"
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
# What the request itself needs, and what a receiver must be able to believe.
RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
RESERVED_STARTS = ("webhook-", "x-obsrv-", "proxy-")


def pack(headers: Mapping[str, str]) -> str:
    """Checked and as text, fit for the column."""
    if len(headers) > MAX_HEADERS:
        raise Invalid(f"At most {MAX_HEADERS} headers.", attr="headers")
    if len({name.lower() for name in headers}) < len(headers):
        raise Invalid("A header is named twice.", attr="headers")
    for name, value in headers.items():
        _check(name, value)
    return orjson.dumps(dict(headers)).decode() if headers else ""


def unpack(text: str) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(text) if text else {}
    return found


def _check(name: str, value: str) -> None:
    if len(name) > NAME_CHARS or not _NAME.fullmatch(name):
        raise Invalid("A header's name has letters, digits and dashes only.", attr="headers")
    if name.lower() in RESERVED or name.lower().startswith(RESERVED_STARTS):
        raise Invalid(f"{name} is set by Obsrv and cannot be your own.", attr="headers")
    if len(value) > VALUE_CHARS or not _VALUE.fullmatch(value):
        raise Invalid(
            f"The value of {name} must be plain ASCII of at most {VALUE_CHARS} characters.",
            attr="headers",
        )
