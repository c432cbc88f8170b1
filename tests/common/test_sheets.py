from __future__ import annotations

import io
import tracemalloc
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from common import sheets

ROWS = 40_000
MEGABYTE = 1024 * 1024


def rows() -> Iterator[tuple[Any, ...]]:
    for number in range(ROWS):
        yield number, f"A thing of number {number} " + "x" * 100, None


@pytest.mark.parametrize("kind", ["csv", "xlsx", "ndjson"])
def test_a_file_of_many_rows_takes_no_memory(kind: str) -> None:
    sent = 0
    tracemalloc.start()
    try:
        for piece in sheets.stream(kind, ["id", "text", "none"], rows()):
            sent += len(piece)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * MEGABYTE
    assert sent > (MEGABYTE // 10 if kind == "xlsx" else 5 * MEGABYTE)


def test_the_first_piece_is_sent_long_before_the_last_row_is_read() -> None:
    read = 0

    def counted() -> Iterator[tuple[Any, ...]]:
        nonlocal read
        for row in rows():
            read += 1
            yield row

    next(sheets.stream("csv", ["id", "text", "none"], counted()))
    assert read <= sheets.CHUNK_ROWS


def test_what_xml_cannot_hold_is_left_out_of_a_sheet() -> None:
    packed = b"".join(sheets.stream("xlsx", ["name"], [("a\ufffe\uffff\x01b",)]))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        root = ET.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    assert "ab" in "".join(root.itertext())
