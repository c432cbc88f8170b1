"""Requests that depend on what the asker has seen: ``ETag``, ``If-None-Match``, ``If-Match``."""

from __future__ import annotations

import hashlib
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import Stale

IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="`ETag` of what was read: answers 412 if it was changed since.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="`ETag` of what was read: answers 304 if it is still the same.",
)


def etag_of(*parts: Any) -> str:
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return f'"{digest[:32]}"'


def require_match(request: Request, etag: str) -> bool:
    """Whether the asker named a state; refused when it is not this one."""
    given = request.headers.get("If-Match")
    if given is None:
        return False
    if "*" not in _listed(given) and etag not in _listed(given):
        raise Stale("It was changed since you read it: read it again, then change it.")
    return "*" not in _listed(given)


def answer(request: Request, body: Any, etag: str) -> Response:
    """The body with its tag, or 304 for who has read it already."""
    reads = request.method in SAFE_METHODS
    seen = _listed(request.headers.get("If-None-Match", "")) if reads else set()
    known = "*" in seen or etag in {tag.removeprefix("W/") for tag in seen}
    response = Response(status=304) if known else Response(body)
    response["ETag"] = etag
    return response


def _listed(header: str) -> set[str]:
    return {tag.strip() for tag in header.split(",")}
