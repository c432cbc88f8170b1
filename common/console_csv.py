"""Lists of the console as CSV: what the filters show, newest first, sent while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone

from common import sheets
from common.streaming import streamed

PARAMETER = "_export"
PIECE = 2_000


class CsvList:
    """A screen whose list can be taken along; ``csv_columns`` are lookups of its rows.

    templates/admin/change_list.html shows the link."""

    csv_columns: Sequence[str] = ()
    # A page takes as long as it has rows.
    list_per_page = 50

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        if request.GET.get(PARAMETER) == "csv" and request.method == "GET":
            return self._as_csv(request)
        answer: HttpResponseBase = super().changelist_view(request, extra_context)  # type: ignore[misc]
        return answer

    def _as_csv(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        query = request.GET.copy()
        del query[PARAMETER]
        request.GET = query  # type: ignore[assignment]
        try:
            rows = self.get_changelist_instance(request).queryset  # type: ignore[attr-defined]
        except IncorrectLookupParameters:
            return HttpResponseRedirect(request.path)
        chunks = sheets.write_csv(self.csv_columns, _pieces(rows, self.csv_columns))
        answer = streamed(request, chunks, content_type=sheets.TYPES["csv"])
        noun = self.model._meta.model_name  # type: ignore[attr-defined]
        name = f"{noun}-{timezone.now():%Y-%m-%d}.csv"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer


def _pieces(rows: QuerySet[Any], columns: Sequence[str]) -> Iterator[list[Any]]:
    """Where the last piece ended, the next begins: no cursor stays open in between."""
    ordered = rows.prefetch_related(None).order_by("-pk").values_list("pk", *columns)
    piece = list(ordered[:PIECE])
    while piece:
        for _, *values in piece:
            yield [_flat(value) for value in values]
        last = piece[-1][0]
        piece = list(ordered.filter(pk__lt=last)[:PIECE]) if len(piece) == PIECE else []


def _flat(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return orjson.dumps(value).decode() if isinstance(value, dict) else value
