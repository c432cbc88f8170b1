"""Tables as files, written while they are sent: CSV, XLSX and NDJSON, row by row.

Text that a spreadsheet would take for a formula gets an apostrophe in front."""

from __future__ import annotations

import csv
import datetime as dt
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

import orjson

Row = Sequence[Any]
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ndjson": "application/x-ndjson",
}
# What a sheet and a cell hold.
MAX_ROWS = 1_048_576
MAX_CELL = 32_767
CHUNK_ROWS = 500


def stream(kind: str, header: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    writers = {"csv": write_csv, "xlsx": write_xlsx, "ndjson": write_ndjson}
    return writers[kind](header, rows)


def safe(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    return safe(value) if isinstance(value, str) else value


def write_csv(header: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    for number, row in enumerate(rows, 1):
        writer.writerow([_plain(value) for value in row])
        if number % CHUNK_ROWS == 0:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode("utf-8", "replace")


def write_ndjson(header: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    lines: list[bytes] = []
    option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    for row in rows:
        lines.append(orjson.dumps(dict(zip(header, row, strict=True)), default=str, option=option))
        if len(lines) >= CHUNK_ROWS:
            yield b"".join(lines)
            lines.clear()
    yield b"".join(lines)


class _Pipe(io.RawIOBase):
    """What a zip file writes, until somebody takes it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
FIXED = {
    "[Content_Types].xml": (
        f'{XML}<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{KIND}.worksheet+xml"/>'
        "</Types>"
    ),
    "_rels/.rels": (
        f'{XML}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1"'
        f' Type="{RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'{XML}<workbook xmlns="{MAIN}" xmlns:r="{RELS}"><sheets>'
        '<sheet name="Export" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'{XML}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1"'
        f' Type="{RELS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>'
    ),
}


def write_xlsx(header: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FIXED.items():
            archive.writestr(name, content)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f'{XML}<worksheet xmlns="{MAIN}"><sheetData>'.encode())
            sheet.write(_xml_row(header))
            for number, row in enumerate(rows, 2):
                if number > MAX_ROWS:
                    break
                sheet.write(_xml_row(row))
                if number % CHUNK_ROWS == 0:
                    yield pipe.take()
            sheet.write(b"</sheetData></worksheet>")
    yield pipe.take()


def is_xml(character: str) -> bool:
    """Can XML hold it at all, escaped or not?"""
    if character in "\ufffe\uffff":
        return False
    return character >= " " or character in "\t\n"


def _xml_row(row: Row) -> bytes:
    return f"<row>{''.join(map(_cell, row))}</row>".encode("utf-8", "replace")


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return f"<c><v>{value}</v></c>"
    text = str(_plain(value))[:MAX_CELL]
    printable = "".join(one for one in text if is_xml(one))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(printable)}</t></is></c>'
