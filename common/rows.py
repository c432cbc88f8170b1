"""Many rows in one statement, written out by C and not value by value in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson
from django.db import connection
from django.db.models import Model


def as_json(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """For ``json_to_recordset``: a list for each column would take several times as long.
    Decimals become text, which PostgreSQL reads exactly."""
    return orjson.dumps([dict(zip(names, row, strict=True)) for row in rows], default=str).decode()


def copy_in(rows: Sequence[Model]) -> None:
    """New rows of one model, without what ``bulk_create`` does for each of them. A row that
    is there already is an error."""
    if not rows:
        return
    meta = rows[0]._meta
    fields = meta.concrete_fields
    names = ", ".join(f'"{field.column}"' for field in fields)
    # COPY goes past Django, which would turn psycopg's errors into its own.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(f'COPY "{meta.db_table}" ({names}) FROM STDIN') as copy,
    ):
        for row in rows:
            copy.write_row([field.pre_save(row, add=True) for field in fields])
