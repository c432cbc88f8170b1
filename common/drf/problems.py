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

STATUS_OF_REFUSAL = {
    "URL_INVALID": 400,
    "VALIDATION_ERROR": 400,
    "REFUSED": 400,
    "FORBIDDEN": 403,
    "URL_BLOCKED": 403,
    "DOMAIN_BLOCKED": 403,
    "LIMIT_REACHED": 403,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "INVALID_STATE": 409,
    "IDEMPOTENCY_CONFLICT": 409,
    "PRECONDITION_FAILED": 412,
    "CIRCUIT_OPEN": 503,
}
TITLES = {
    "URL_INVALID": "URL invalid",
    "URL_BLOCKED": "URL blocked",
    "AUTH_REQUIRED": "Authentication required",
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
        return {
            "type": f"/docs/errors#{self.code.lower().replace('_', '-')}",
            "title": TITLES.get(self.code, self.code.replace("_", " ").capitalize()),
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
    status = STATUS_OF_REFUSAL.get(error.code, 400)
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
