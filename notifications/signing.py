"""Signatures a receiver can check with the stripe or the standardwebhooks package."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256

TOLERANCE_SECONDS = 300
SECRET_PREFIX = "whsec_"  # noqa: S105


class BadSignature(ValueError):
    """The message was not signed with any of the secrets, or too long ago."""


def signature_header(body: bytes, *, secrets: Sequence[str], timestamp: int) -> str:
    """As Stripe signs: the key is the whole secret, one ``v1`` for each live one."""
    signed = b"%d.%s" % (timestamp, body)
    marks = [hmac.digest(secret.encode(), signed, sha256).hex() for secret in secrets]
    return ",".join([f"t={timestamp}", *(f"v1={mark}" for mark in marks)])


def standard_headers(
    event_id: str, body: bytes, secrets: Sequence[str], timestamp: int
) -> dict[str, str]:
    """As Standard Webhooks signs: the key is what stands decoded behind ``whsec_``."""
    signed = b"%s.%d.%s" % (event_id.encode(), timestamp, body)
    marks = [hmac.digest(_standard_key(secret), signed, sha256) for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(mark).decode()}" for mark in marks),
    }


def verify(body: bytes, header: str, *, secrets: Sequence[str], now: float) -> int:
    """The time of signing; raises BadSignature unless one secret made one of the marks."""
    timestamp, marks = _read(header)
    if abs(now - timestamp) > TOLERANCE_SECONDS:
        raise BadSignature("signed too long ago, or the clocks differ")
    _, expected = _read(signature_header(body, secrets=secrets, timestamp=timestamp))
    if not any(hmac.compare_digest(mark, wanted) for mark in marks for wanted in expected):
        raise BadSignature("no secret made this signature")
    return timestamp


def _standard_key(secret: str) -> bytes:
    # The padding may be missing, and more of it than needed is ignored.
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX) + "==")


def _read(header: str) -> tuple[int, list[bytes]]:
    pairs = [part.partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t" and value.isdecimal()]
    if len(times) != 1:
        raise BadSignature("the header names no time")
    return int(times[0]), [value.encode() for name, _, value in pairs if name == "v1"]
