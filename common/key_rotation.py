"""Putting every stored secret under the newest key, a batch at a time.

Each row is written only if it still holds what was read, so it runs beside the workers; what
is under the newest key already is skipped, so an interrupted run simply starts again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection
from psycopg import sql

from common.crypto import EncryptedTextField, Undecryptable, reencrypt

BATCH = 500


@dataclass
class Tally:
    """What was found in one column."""

    table: str
    column: str
    rotated: int = 0
    current: int = 0
    unreadable: int = 0


def rotate_all() -> Iterator[Tally]:
    """Every encrypted column of every model, each told when it is done."""
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if isinstance(field, EncryptedTextField) and not model._meta.proxy:
                yield _rotate(Tally(model._meta.db_table, str(field.column)))


def _rotate(tally: Tally) -> Tally:
    last: uuid.UUID | None = None
    while rows := _read(tally, last):
        changes = [change for row in rows if (change := _change(tally, *row))]
        tally.rotated += _write(tally, changes)
        last = rows[-1][0]
    return tally


def _read(tally: Tally, after: uuid.UUID | None) -> list[tuple[uuid.UUID, str]]:
    # Not by the ORM: one secret that no key can read would hide all the others.
    query = sql.SQL(
        "SELECT id, {column} FROM {table}"
        " WHERE {column} <> '' AND (%s::uuid IS NULL OR id > %s) ORDER BY id LIMIT %s"
    ).format(**_names(tally))
    with connection.cursor() as cursor:
        cursor.execute(query, [after, after, BATCH])
        found: list[tuple[uuid.UUID, str]] = cursor.fetchall()
    return found


def _change(tally: Tally, pk: uuid.UUID, token: str) -> tuple[uuid.UUID, str, str] | None:
    try:
        fresh = reencrypt(token)
    except Undecryptable:
        tally.unreadable += 1
        return None
    if fresh is None:
        tally.current += 1
        return None
    return pk, token, fresh


def _write(tally: Tally, changes: list[tuple[uuid.UUID, str, str]]) -> int:
    if not changes:
        return 0
    query = sql.SQL(
        "UPDATE {table} t SET {column} = v.fresh"
        " FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS v (id, old, fresh)"
        " WHERE t.id = v.id AND t.{column} = v.old"
    ).format(**_names(tally))
    columns: list[Any] = [list(column) for column in zip(*changes, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(query, columns)
        return int(cursor.rowcount)


def _names(tally: Tally) -> dict[str, sql.Composable]:
    return {"table": sql.Identifier(tally.table), "column": sql.Identifier(tally.column)}
