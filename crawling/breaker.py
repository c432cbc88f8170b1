"""The circuit of a host: open after too many transport failures, closed by one good probe."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from crawling.models import Domain

WINDOW_SECONDS = 600
BUCKET_SECONDS = 10
LONGEST_WAIT_SECONDS = 3600.0
State = Domain.Breaker


@dataclass(frozen=True)
class CircuitOpened:
    """A host is left alone because it failed so often."""

    host: str
    failures: int
    opened_at: dt.datetime
    next_try_at: dt.datetime


@dataclass(slots=True)
class Breaker:
    threshold: int
    timeout_s: int
    state: str = State.CLOSED
    openings: int = 0
    opened_at: dt.datetime | None = None
    # By tens of seconds: failures, successes.
    window: dict[int, list[int]] = field(default_factory=dict)
    # Something was seen since it was read from the row.
    learnt: bool = False

    @classmethod
    def of(cls, domain: Domain) -> Breaker:
        """As the holder of the domain meets it: whoever may visit an open one probes it."""
        state = State.CLOSED if domain.breaker_state == State.CLOSED else State.HALF_OPEN
        return cls(
            threshold=domain.breaker_threshold,
            timeout_s=domain.breaker_timeout_s,
            state=state,
            openings=domain.breaker_openings,
            opened_at=domain.breaker_opened_at,
            window={int(bucket): list(counts) for bucket, counts in domain.breaker_window.items()},
        )

    @property
    def is_open(self) -> bool:
        return self.state == State.OPEN

    @property
    def opened_first(self) -> bool:
        """Open, and not because a probe failed once more."""
        return self.is_open and self.openings == 1

    @property
    def probing(self) -> bool:
        return self.state == State.HALF_OPEN

    @property
    def failures(self) -> int:
        return sum(counts[0] for counts in self._recent().values())

    @property
    def wait_seconds(self) -> float:
        doublings = min(max(0, self.openings - 1), 16)
        return min(self.timeout_s * 2.0**doublings, LONGEST_WAIT_SECONDS)

    def succeeded(self) -> None:
        # An answer that was on its way when the circuit opened proves nothing.
        if self.is_open:
            return
        if self.probing:
            self.state, self.opened_at = State.CLOSED, None
            self.window.clear()
        self.openings = 0
        self._count(1)

    def failed(self) -> None:
        self._count(0)
        if not self.is_open and (self.probing or self._too_many()):
            self.state, self.opened_at = State.OPEN, timezone.now()
            self.openings += 1

    def columns(self) -> dict[str, Any]:
        self.window = self._recent()
        return {
            "breaker_state": self.state,
            "breaker_failures": self.failures,
            "breaker_opened_at": self.opened_at,
            "breaker_openings": self.openings,
            "breaker_window": {str(bucket): counts for bucket, counts in self.window.items()},
        }

    def _too_many(self) -> bool:
        recent = self._recent().values()
        failures, successes = sum(c[0] for c in recent), sum(c[1] for c in recent)
        return failures >= self.threshold and failures > successes

    def _count(self, which: int) -> None:
        self.learnt = True
        bucket = int(time.time()) // BUCKET_SECONDS
        self.window.setdefault(bucket, [0, 0])[which] += 1

    def _recent(self) -> dict[int, list[int]]:
        first = (int(time.time()) - WINDOW_SECONDS) // BUCKET_SECONDS
        return {bucket: counts for bucket, counts in self.window.items() if bucket > first}


def tell_opened(host: str, breaker: Breaker) -> None:
    """To whom it concerns; see ``settings.CIRCUIT_NEWS``."""
    tell: Callable[[CircuitOpened], None] = import_string(settings.CIRCUIT_NEWS)
    opened_at = breaker.opened_at or timezone.now()
    next_try_at = opened_at + dt.timedelta(seconds=breaker.wait_seconds)
    tell(CircuitOpened(host, breaker.failures, opened_at, next_try_at))
