"""What an answer means for a delivery: done, once more at some time, or given up."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from common.retry_after import retry_after_seconds
from notifications.models import Delivery

SPREAD = 0.1

_dice = secrets.SystemRandom()


@dataclass(frozen=True)
class Verdict:
    status: Delivery.Status
    delay_seconds: float = 0.0
    # How long the receiver asks to be left alone, with everything.
    rest_seconds: float = 0.0
    disable_reason: str = ""


def judge(
    *,
    number: int,
    http_status: int | None,
    retry_after: str,
    schedule: Sequence[int],
    now: dt.datetime,
) -> Verdict:
    """``number`` is the try just made, from 1; ``http_status`` is None without an answer."""
    if http_status is not None and HTTPStatus(200) <= http_status < HTTPStatus(300):
        return Verdict(Delivery.Status.SUCCESS)
    if http_status == HTTPStatus.GONE:
        return Verdict(Delivery.Status.EXHAUSTED, disable_reason="The receiver answered 410 Gone.")
    if number > len(schedule):
        return Verdict(Delivery.Status.EXHAUSTED)
    delay = schedule[number - 1] * _dice.uniform(1 - SPREAD, 1 + SPREAD)
    if http_status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        asked = retry_after_seconds(retry_after, now=now)
        if asked is not None:
            # A receiver that says "at once" would use up all tries within a second.
            delay = max(asked, schedule[0])
            return Verdict(Delivery.Status.RETRYING, delay_seconds=delay, rest_seconds=delay)
    return Verdict(Delivery.Status.RETRYING, delay_seconds=delay)
