"""Every failure of the API as one kind of document: RFC 9457 ``application/problem+json``."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import psycopg
from django.core import exceptions as django_errors
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from common.errors import Refused
from common.requests import current_request_id

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
NON_FIELD = "non_field_errors"
RETRY_SECONDS = 5


@dataclass(frozen=True)
class Code:
    """What clients may rely on; /docs/errors is made of these."""

    name: str
    status: int
    title: str
    meaning: str
    remedy: str

    @property
    def anchor(self) -> str:
        return self.name.lower().replace("_", "-")


CODES = {
    code.name: code
    for code in (
        Code(
            "VALIDATION_ERROR",
            400,
            "Validation error",
            "A field, a parameter or the JSON itself is not valid.",
            "Correct what errors names and send it again.",
        ),
        Code(
            "URL_INVALID",
            400,
            "URL invalid",
            "An address cannot be asked: its syntax, scheme, port or length.",
            "Give a full http or https address; webhooks need https.",
        ),
        Code(
            "REFUSED",
            400,
            "Refused",
            "The request is understood, but it cannot be done like this.",
            "Read detail and change the request.",
        ),
        Code(
            "AUTH_REQUIRED",
            401,
            "Authentication required",
            "There is no API key, or it is unknown, revoked or expired.",
            "Send Authorization: Bearer with a live key.",
        ),
        Code(
            "FORBIDDEN",
            403,
            "Forbidden",
            "The key or its client may not do this.",
            "Use a key with the scope it needs, or ask the operator.",
        ),
        Code(
            "URL_BLOCKED",
            403,
            "URL blocked",
            "The address leads to a network that must not be reached, such as a private one.",
            "Use a public address, or ask the operator to allow the network.",
        ),
        Code(
            "DOMAIN_BLOCKED",
            403,
            "Domain blocked",
            "The operator does not allow this host to be crawled.",
            "Use another host, or ask the operator.",
        ),
        Code(
            "LIMIT_REACHED",
            403,
            "Limit reached",
            "The client has as many of these as it may have.",
            "Delete one first, or ask the operator for a higher limit.",
        ),
        Code(
            "NOT_FOUND",
            404,
            "Not found",
            "Nothing is here, or it belongs to another client.",
            "Check the path (no trailing slash) and the id.",
        ),
        Code(
            "METHOD_NOT_ALLOWED",
            405,
            "Method not allowed",
            "The path exists, but does not take this method.",
            "Use one of those in the Allow header.",
        ),
        Code(
            "NOT_ACCEPTABLE",
            406,
            "Not acceptable",
            "The answer was asked for in a format that is not spoken here.",
            "Accept application/json.",
        ),
        Code(
            "CONFLICT",
            409,
            "Conflict",
            "Something like this exists already, or is being done right now.",
            "Read the one that exists, or wait for what is running.",
        ),
        Code(
            "INVALID_STATE",
            409,
            "Invalid state",
            "The object is in a state that does not allow this.",
            "Read the object; detail says what its state must be.",
        ),
        Code(
            "IDEMPOTENCY_CONFLICT",
            409,
            "Idempotency conflict",
            "The Idempotency-Key belongs to another request, or that one is still running.",
            "Use a new key for a new request; repeat the same request later.",
        ),
        Code(
            "PRECONDITION_FAILED",
            412,
            "Precondition failed",
            "The object was changed since you read it.",
            "Read it again and send your change with the new ETag.",
        ),
        Code(
            "PAYLOAD_TOO_LARGE",
            413,
            "Payload too large",
            "The body is larger than the server takes.",
            "Send it in parts.",
        ),
        Code(
            "UNSUPPORTED_MEDIA_TYPE",
            415,
            "Unsupported media type",
            "The body is not JSON.",
            "Send Content-Type: application/json.",
        ),
        Code(
            "RATE_LIMITED",
            429,
            "Rate limited",
            "The key made more requests than it may within a minute.",
            "Wait for the seconds in Retry-After.",
        ),
        Code(
            "INTERNAL_ERROR",
            500,
            "Internal error",
            "Something failed on our side.",
            "Try again later; quote request_id to the operator.",
        ),
        Code(
            "CIRCUIT_OPEN",
            503,
            "Circuit open",
            "The host failed too often and is left alone for a while.",
            "Try again after the time that detail names.",
        ),
        Code(
            "SERVICE_UNAVAILABLE",
            503,
            "Service unavailable",
            "A service this needs is away.",
            "Try again after the seconds in Retry-After.",
        ),
    )
}
# What Django's own answers become: code and what to do.
BY_STATUS = {
    400: ("VALIDATION_ERROR", "The request is malformed: check the host name and the syntax."),
    403: ("FORBIDDEN", "This is not allowed."),
    404: ("NOT_FOUND", "Nothing is here: check the path (no trailing slash) and the id."),
    405: ("METHOD_NOT_ALLOWED", "This path does not take that method; see the Allow header."),
    413: ("PAYLOAD_TOO_LARGE", "The body is too large: send it in parts."),
    500: ("INTERNAL_ERROR", "Something failed on our side; quote the request id to the operator."),
    503: ("SERVICE_UNAVAILABLE", "A service this needs is away: try again in a few seconds."),
}


@dataclass(frozen=True)
class Problem:
    status: int
    code: str
    detail: str
    errors: list[dict[str, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        code = CODES[self.code]
        return {
            "type": f"/docs/errors#{code.anchor}",
            "title": code.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": current_request_id(),
            "errors": self.errors,
        }


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler."""
    set_rollback()
    problem = of(error)
    return Response(
        problem.document(),
        status=problem.status,
        headers=problem.headers,
        content_type=CONTENT_TYPE,
    )


def answer(problem: Problem) -> HttpResponse:
    """The same document where DRF is not at work."""
    return HttpResponse(
        orjson.dumps(problem.document()),
        status=problem.status,
        headers=problem.headers,
        content_type=CONTENT_TYPE,
    )


def of(error: Exception) -> Problem:
    for kind, describe in DESCRIBED:
        if isinstance(error, kind):
            problem: Problem = describe(error)
            return problem
    log.error("Unhandled exception", exc_info=error)
    return of_status(500)


def of_status(status: int) -> Problem:
    code, detail = BY_STATUS.get(status) or BY_STATUS[400 if status < 500 else 500]
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    return Problem(status, code, detail, headers=headers)


def too_large(_error: Exception | None = None) -> Problem:
    return of_status(413)


def _refused(error: Refused) -> Problem:
    status = CODES[error.code].status
    errors = []
    if error.attr:
        errors = [{"attr": error.attr, "code": error.code.lower(), "detail": error.detail}]
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    return Problem(status, error.code, error.detail, errors, headers)


def _invalid(error: drf.ValidationError) -> Problem:
    errors = list(_flatten(error.detail, ""))
    return Problem(400, "VALIDATION_ERROR", _sentence(errors), errors)


def _invalid_model(error: django_errors.ValidationError) -> Problem:
    if not hasattr(error, "error_dict"):
        return _invalid(drf.ValidationError(error.messages))
    details = dict(error.message_dict)
    details[NON_FIELD] = details.pop(django_errors.NON_FIELD_ERRORS, [])
    return _invalid(drf.ValidationError(details))


def _flatten(detail: Any, attr: str) -> Iterator[dict[str, Any]]:
    """Nested errors as rows with dotted names: ``items.0.url``."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = attr if name == NON_FIELD else f"{attr}.{name}".lstrip(".")
            yield from _flatten(inner, own)
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, (Mapping, list))
            yield from _flatten(inner, f"{attr}.{index}".lstrip(".") if nested else attr)
    else:
        code = getattr(detail, "code", None) or "invalid"
        yield {"attr": attr or None, "code": code, "detail": str(detail)}


def _sentence(errors: list[dict[str, Any]]) -> str:
    if not errors:
        return "The request is not valid."
    first = errors[0]
    text = f"{first['attr']}: {first['detail']}" if first["attr"] else first["detail"]
    more = len(errors) - 1
    return f"{text} (and {more} more, see errors)" if more else text


def _unauthenticated(error: drf.APIException) -> Problem:
    return Problem(
        401, "AUTH_REQUIRED", str(error.detail), headers={"WWW-Authenticate": 'Bearer realm="api"'}
    )


def _forbidden(error: Exception) -> Problem:
    detail = str(getattr(error, "detail", "")) or BY_STATUS[403][1]
    return Problem(403, "FORBIDDEN", detail)


def _throttled(error: drf.Throttled) -> Problem:
    seconds = max(1, math.ceil(getattr(error, "wait", None) or 1))
    detail = f"Too many requests: try again in {seconds} s."
    return Problem(429, "RATE_LIMITED", detail, headers={"Retry-After": str(seconds)})


def _unavailable(error: Exception) -> Problem:
    log.warning("Database away: %s", error)
    return of_status(503)


def _not_found(_error: Exception) -> Problem:
    # One text for every reason: another client's object must look like none at all.
    return of_status(404)


def _api_exception(error: drf.APIException) -> Problem:
    headers = {"Retry-After": str(RETRY_SECONDS)} if error.status_code == 503 else {}
    code = CODE_OF_STATUS.get(error.status_code) or of_status(error.status_code).code
    return Problem(error.status_code, code, str(error.detail), headers=headers)


CODE_OF_STATUS = {
    406: "NOT_ACCEPTABLE",
    409: "CONFLICT",
    412: "PRECONDITION_FAILED",
    415: "UNSUPPORTED_MEDIA_TYPE",
}

# The first match answers, so the narrow come before the wide.
DESCRIBED: list[tuple[type[Exception] | tuple[type[Exception], ...], Any]] = [
    (Refused, _refused),
    (drf.ValidationError, _invalid),
    (django_errors.ValidationError, _invalid_model),
    ((drf.NotAuthenticated, drf.AuthenticationFailed), _unauthenticated),
    ((drf.PermissionDenied, django_errors.PermissionDenied), _forbidden),
    ((drf.NotFound, Http404, django_errors.ObjectDoesNotExist), _not_found),
    (drf.Throttled, _throttled),
    (drf.APIException, _api_exception),
    (django_errors.RequestDataTooBig, too_large),
    (django_errors.SuspiciousOperation, lambda _error: of_status(400)),
    ((OperationalError, InterfaceError, psycopg.OperationalError), _unavailable),
]
