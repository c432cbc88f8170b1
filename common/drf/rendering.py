"""JSON in and out: exact decimals, UTC with ``Z``, and nothing a database could choke on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import IO, Any

import orjson
from django.utils.functional import Promise
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, (Promise, bytes)):
        return str(value) if isinstance(value, Promise) else value.decode()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(data: Any) -> bytes:
    return orjson.dumps(data, default=_plain, option=OPTIONS)


class JsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None  # JSON is UTF-8 by definition.
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else dumps(data)


class StrictJsonParser(BaseParser):
    """DRF answers 415 for any other content type, since this is the only parser."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        raw = stream.read()
        try:
            data = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}") from error
        if not isinstance(data, (dict, list)):
            raise ParseError("The body must be a JSON object or array.")
        # JSON can carry a NUL only as this escape, so most bodies need no walk.
        if b"\\u0000" in raw and (found := next(_nul_paths(data, ""), None)) is not None:
            raise ValidationError({found: "NUL characters are not allowed."}, code="nul")
        return data


def _nul_paths(data: Any, path: str) -> Iterator[str]:
    if isinstance(data, str):
        if "\0" in data:
            yield path
    elif isinstance(data, dict):
        for name, inner in data.items():
            own = f"{path}.{name}".lstrip(".")
            if "\0" in name:
                yield own.replace("\0", "�")
            yield from _nul_paths(inner, own)
    elif isinstance(data, list):
        for index, inner in enumerate(data):
            yield from _nul_paths(inner, f"{path}.{index}".lstrip("."))
