"""Lists from outside: CSV or JSON becomes rows, and websites are registered line by line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.audit import Actor
from accounts.models import Client
from common.errors import Invalid, Refused
from monitoring.registration import (
    Checked,
    Registration,
    check_registration,
    keep_website,
)
from monitoring.watching import Line

MAX_WEBSITES = 100
MAX_CELL = 100_000
Row = Mapping[str, Any]
# Turns a row into a registration; raises ``Refused`` naming what is wrong with it.
Reader = Callable[[Row], Registration]


def read_csv(text: str, *, required: str) -> list[dict[str, str]]:
    """Rows by the names in the first line; a list without a head line is taken as one
    column of what is ``required``. Empty cells count as not given."""
    sample = text.lstrip("\ufeff")
    if "\0" in sample:
        raise Invalid("The file has NUL characters: save it as CSV in UTF-8.", attr="body")
    delimiter = max(",;\t", key=sample.partition("\n")[0].count)
    csv.field_size_limit(MAX_CELL)
    try:
        rows = list(csv.reader(io.StringIO(sample), delimiter=delimiter))
    except csv.Error as error:
        raise Invalid(f"This is not CSV: {error}.", attr="body") from error
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        raise Invalid("The list is empty.", attr="body")
    head = [cell.strip().lower() for cell in rows[0]]
    if required not in head:
        if len(head) > 1:
            raise Invalid(
                f"The first line must name the columns; {required} is missing.", attr="body"
            )
        head, rows = [required], [[], *rows]
    return [_row(head, row) for row in rows[1:]]


def _row(head: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    cells = zip(head, row, strict=False)
    return {name: cell.strip() for name, cell in cells if name and cell.strip()}


def import_websites(
    client: Client, rows: Sequence[Row], read: Reader, *, actor: Actor, dry_run: bool = True
) -> list[Line]:
    """Register each, an answer for each line; a dry run does the same and takes it back."""
    if len(rows) > MAX_WEBSITES:
        raise Invalid(f"At most {MAX_WEBSITES} websites at a time.", attr="items")
    # Addresses are looked up here, which takes its time: no row waits for it.
    checked = [_check(client, row, read) for row in rows]
    urls = [str(row.get("base_url", ""))[:2048] for row in rows]
    lines: list[Line] = []
    with transaction.atomic():
        for number, (url, one) in enumerate(zip(urls, checked, strict=True), 1):
            lines.append(_register(number, url, client, one, actor))
        if dry_run:
            transaction.set_rollback(True)
    return lines


def _check(client: Client, row: Row, read: Reader) -> Checked | Refused:
    try:
        return check_registration(client, read(row))
    except Refused as refused:
        return refused


def _register(
    number: int, url: str, client: Client, checked: Checked | Refused, actor: Actor
) -> Line:
    if isinstance(checked, Refused):
        return _refused(number, url, checked)
    try:
        website = keep_website(client, checked, actor=actor)
    except Refused as refused:
        return _refused(number, url, refused)
    return Line(number, url, "registered", website.pk)


def _refused(number: int, url: str, refused: Refused) -> Line:
    place = f"{refused.attr}: " if refused.attr else ""
    return Line(number, url, "refused", detail=f"{place}{refused.detail}")
