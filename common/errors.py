"""Refusals: what a job module raises when it will not do what was asked.

Each has a code that API clients may rely on, a sentence that says what to do, and the
field it is about. The doors turn them into answers; job modules know no HTTP.
"""

from __future__ import annotations


class Refused(Exception):
    """Nothing was changed; ``detail`` says why and what to do."""

    code = "REFUSED"

    def __init__(self, detail: str, *, attr: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.attr = attr


class UrlInvalid(Refused):
    code = "URL_INVALID"


class UrlBlocked(Refused):
    code = "URL_BLOCKED"


class DomainBlocked(Refused):
    code = "DOMAIN_BLOCKED"


class CircuitOpen(Refused):
    code = "CIRCUIT_OPEN"


class LimitReached(Refused):
    code = "LIMIT_REACHED"


class InvalidState(Refused):
    code = "INVALID_STATE"


class Conflict(Refused):
    code = "CONFLICT"


class Invalid(Refused):
    code = "VALIDATION_ERROR"


class Stale(Refused):
    """Somebody else changed it since it was read."""

    code = "PRECONDITION_FAILED"
