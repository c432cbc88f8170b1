"""Searching long lists: by id, through the index. What Django would do with ``=id`` reads it all."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

EVENT_PREFIX = "evt_"


class FoundById:
    """``id_fields`` are looked up for an id, ``text_fields`` for anything else; both exactly."""

    id_fields: Sequence[str] = ("id",)
    text_fields: Sequence[str] = ()
    # Django shows no search box without.
    search_fields = ["id"]
    search_help_text = "An id."

    def get_search_results(
        self, request: HttpRequest, rows: QuerySet[Any], term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = term.strip()
        if not term:
            return rows, False
        pk = _as_id(term)
        names, value = (self.text_fields, term) if pk is None else (self.id_fields, pk)
        wanted = Q()
        for name in names:
            wanted |= Q((name, value))
        return (rows.filter(wanted) if names else rows.none()), False


def _as_id(term: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(term.removeprefix(EVENT_PREFIX))
    except ValueError:
        return None
