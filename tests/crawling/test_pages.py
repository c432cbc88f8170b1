"""Pages are stored once per content, and read back as they came."""

from __future__ import annotations

import gzip
import os
import uuid
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from crawling import pages
from crawling.models import StoredPage
from crawling.pages import Content, PageLost, Storing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("page_files")]


def store(*bodies: bytes, content_type: str = "text/html; charset=UTF-8") -> dict[str, uuid.UUID]:
    storing = Storing(Content(pages.hash_of(body), body, content_type) for body in bodies)
    return storing.record()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_page_is_read_back_as_it_came(page_files: Path) -> None:
    body = b"<h1>Lamp</h1>" * 1000
    store(body)
    stored = StoredPage.objects.get()
    assert pages.read_page(stored) == body
    assert (stored.size, stored.content_type, stored.charset) == (13_000, "text/html", "utf-8")
    assert stored.compressed_size < 1000
    (file,) = files(page_files)
    digest = pages.hash_of(body)
    assert file.relative_to(page_files).as_posix() == f"{digest[:2]}/{digest[2:4]}/{digest}.gz"


def test_the_same_content_is_kept_once_and_not_written_again(page_files: Path) -> None:
    first = store(b"one", b"two", b"one")
    written = {path: path.stat().st_mtime_ns for path in files(page_files)}
    assert store(b"two", b"one") == first
    assert {path: path.stat().st_mtime_ns for path in files(page_files)} == written
    assert StoredPage.objects.count() == len(written) == 2


def test_a_batch_costs_two_statements_however_many_pages() -> None:
    with CaptureQueriesContext(connection) as queries:
        store(*(b"page %d" % n for n in range(100)))
    assert len(queries) == 2
    with CaptureQueriesContext(connection) as queries:
        store(*(b"page %d" % n for n in range(100)))
    assert len(queries) == 1


@pytest.mark.parametrize("damage", [b"", b"not gzip at all", None])
def test_a_damaged_page_is_noticed(page_files: Path, damage: bytes | None) -> None:
    store(b"true")
    (file,) = files(page_files)
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    with pytest.raises(PageLost):
        pages.read_page(StoredPage.objects.get())


def test_another_page_in_its_place_is_noticed(page_files: Path) -> None:
    store(b"mine", b"theirs")
    key = page_files / pages.key_of(pages.hash_of(b"mine"))
    key.write_bytes((page_files / pages.key_of(pages.hash_of(b"theirs"))).read_bytes())
    with pytest.raises(PageLost, match="not what was stored"):
        pages.read_content(pages.hash_of(b"mine"))


def test_a_crash_before_the_row_leaves_a_file_that_the_next_batch_takes(page_files: Path) -> None:
    with transaction.atomic():
        store(b"page")
        transaction.set_rollback(True)
    assert not StoredPage.objects.exists()
    assert len(files(page_files)) == 1
    store(b"page")
    assert pages.read_page(StoredPage.objects.get()) == b"page"


def test_a_disk_that_refuses_costs_the_page_but_not_the_check(
    settings: Settings, page_files: Path
) -> None:
    page_files.parent.joinpath("pages").write_text("a file where the folder should be")
    assert store(b"page") == {}
    assert not StoredPage.objects.exists()


def test_a_disk_that_takes_only_a_part_leaves_no_half_file(
    page_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:2]))
    assert store(b"page") == {}
    assert files(page_files) == []


def test_gzip_from_the_shop_is_kept_as_it_came(page_files: Path) -> None:
    body = b"<h1>Lamp</h1>" * 100
    packed = gzip.compress(body, 9)
    Storing([Content(pages.hash_of(body), body, "text/html", packed)]).record()
    (file,) = files(page_files)
    assert file.read_bytes() == packed
    assert pages.read_page(StoredPage.objects.get()) == body
