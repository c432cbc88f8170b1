"""How long somebody asks to be left alone: the ``Retry-After`` header in both its forms."""

from __future__ import annotations

import datetime as dt
from email.utils import parsedate_to_datetime

MAX_SECONDS = 24 * 3600.0


def retry_after_seconds(text: str, *, now: dt.datetime) -> float | None:
    """Seconds or an HTTP date, at most a day; None when it says nothing we can read."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        # A float of few digits: a thousand of them are no reason to count.
        return min(float(text[:12]), MAX_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return min(max((moment - now).total_seconds(), 0.0), MAX_SECONDS)
