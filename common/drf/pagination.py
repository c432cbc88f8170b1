"""Pages by keyset: the cursor says where the last page ended, so no page is slower than the first.

``{"items": [], "next_cursor": null, "has_more": false}``, with ``total`` on ``?count=true``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
DEFAULT_ORDERING = ("-created_at", "-id")

_signer = signing.Signer(sep=".", salt="common.drf.pagination")


def _refuse(name: str, text: str) -> ValidationError:
    return ValidationError({name: [text]})


@dataclass(frozen=True)
class Column:
    """One step of the order; rows without a value come last, whatever the direction."""

    name: str
    descending: bool
    field: Any
    nullable: bool

    @property
    def order(self) -> OrderBy:
        nulls_last = True if self.nullable else None
        return OrderBy(F(self.name), descending=self.descending, nulls_last=nulls_last)

    def value_of(self, row: Any) -> str | None:
        value = row
        for part in self.name.split("__"):
            value = getattr(value, part, None)
        if value is None:
            return None
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    def at(self, value: str | None) -> Q:
        return Q((f"{self.name}__isnull", True)) if value is None else Q((self.name, value))

    def beyond(self, value: str | None) -> Q | None:
        if value is None:
            return None
        past = Q((f"{self.name}__{'lt' if self.descending else 'gt'}", value))
        return past | Q((f"{self.name}__isnull", True)) if self.nullable else past

    def from_(self, value: str) -> Q:
        return Q((f"{self.name}__{'lte' if self.descending else 'gte'}", value))


def _column(queryset: QuerySet[Any], term: str) -> Column:
    name = term.removeprefix("-")
    if name in queryset.query.annotations:
        field = queryset.query.annotations[name].output_field
        return Column(name, term.startswith("-"), field, nullable=True)
    model: Any = queryset.model
    nullable = False
    for part in name.split("__"):
        field = model._meta.get_field(part)
        nullable = nullable or field.null
        model = field.related_model
    return Column(name, term.startswith("-"), field, nullable)


def _after(columns: Sequence[Column], values: Sequence[str | None]) -> Q:
    """Rows past the one the cursor names."""
    result, same = Q(pk__in=[]), Q()
    for column, value in zip(columns, values, strict=True):
        past = column.beyond(value)
        if past is not None:
            result |= same & past
        same &= column.at(value)
    first, value = columns[0], values[0]
    if value is not None and not first.nullable:
        # Says nothing new, but lets PostgreSQL start at this place of the index.
        result &= first.from_(value)
    return result


class CursorPages(BasePagination):
    limit: int
    total: int | None = None

    def paginate_queryset(  # type: ignore[override]
        self, queryset: QuerySet[Any], request: Request, view: Any | None = None
    ) -> list[Any]:
        parameters = request.query_params
        self.limit = _limit(parameters.get("limit"))
        terms = _terms(view, parameters.get("order"))
        self.order = ",".join(terms)
        self.columns = [_column(queryset, term) for term in terms]
        self.total = queryset.count() if _flag("count", parameters.get("count")) else None
        ordered = queryset.order_by(*(column.order for column in self.columns))
        if cursor := parameters.get("cursor"):
            ordered = ordered.filter(_after(self.columns, self._decode(cursor)))
        rows = list(ordered[: self.limit + 1])
        self.has_more = len(rows) > self.limit
        self.page = rows[: self.limit]
        return self.page

    def get_paginated_response(self, data: Any) -> Response:
        body = {
            "items": data,
            "next_cursor": self._encode(self.page[-1]) if self.has_more else None,
            "has_more": self.has_more,
        }
        return Response(body if self.total is None else body | {"total": self.total})

    def _encode(self, row: Any) -> str:
        values = [column.value_of(row) for column in self.columns]
        return _signer.sign_object({"o": self.order, "v": values})

    def _decode(self, cursor: str) -> list[str | None]:
        try:
            content = _signer.unsign_object(cursor)
        except (signing.BadSignature, ValueError) as error:
            raise _refuse("cursor", "Pass next_cursor of the page before, unchanged.") from error
        if content["o"] != self.order:
            raise _refuse("cursor", "This cursor belongs to another order.")
        values: list[str | None] = content["v"]
        return values

    def parameters(self, view: Any) -> set[str]:
        """The query parameters this understands."""
        order = {"order"} if getattr(view, "ordering_fields", ()) else set()
        return {"limit", "cursor", "count"} | order

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["items", "next_cursor", "has_more"],
            "properties": {
                "items": {"type": "array", "items": schema["items"]},
                "next_cursor": {
                    "type": ["string", "null"],
                    "description": "Pass as `cursor` to get the next page; null on the last.",
                },
                "has_more": {"type": "boolean"},
                "total": {"type": "integer", "description": "Only with `count=true`."},
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        documented = [
            _parameter("limit", "Items per page.", limit),
            _parameter("cursor", "`next_cursor` of the page before.", {"type": "string"}),
            _parameter("count", "Also count all items (`total`).", {"type": "boolean"}),
        ]
        if names := getattr(view, "ordering_fields", ()):
            choices = [sign + name for name in names for sign in ("", "-")]
            order = {"type": "string", "enum": choices}
            documented.append(_parameter("order", "Field to order by, `-` for descending.", order))
        return documented


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }


def _limit(given: str | None) -> int:
    if given is None:
        return DEFAULT_LIMIT
    if given.isascii() and given.isdigit() and len(given) < 4 and 1 <= int(given) <= MAX_LIMIT:
        return int(given)
    raise _refuse("limit", f"Must be a whole number from 1 to {MAX_LIMIT}.")


def _flag(name: str, given: str | None) -> bool:
    if given not in (None, "true", "false"):
        raise _refuse(name, "Must be true or false.")
    return given == "true"


def _terms(view: Any, given: str | None) -> tuple[str, ...]:
    if given is None:
        return tuple(getattr(view, "ordering", None) or DEFAULT_ORDERING)
    allowed = getattr(view, "ordering_fields", ())
    if given.removeprefix("-") not in allowed:
        raise _refuse("order", f"Must be one of {', '.join(allowed)}, with - for descending.")
    tie_break = "-id" if given.startswith("-") else "id"
    return (given, tie_break)
