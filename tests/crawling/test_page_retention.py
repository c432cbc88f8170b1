"""What is too young or needed never goes; what is neither goes with its file."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from crawling import page_retention as retention
from crawling import pages
from crawling.models import StoredPage
from crawling.tasks import purge_pages
from tests.crawling.test_pages import files, store
from tests.factories.monitoring import ChangeFactory, ProductFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("page_files")]
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
needed: set[str] = set()


def keep_needed(hashes: Collection[str]) -> set[str]:
    return needed & set(hashes)


def stored(body: bytes, age: dt.timedelta) -> str:
    store(body)
    digest = pages.hash_of(body)
    StoredPage.objects.filter(content_hash=digest).update(last_seen_at=timezone.now() - age)
    return digest


def left() -> set[str]:
    return set(StoredPage.objects.values_list("content_hash", flat=True))


def test_old_pages_go_with_their_files_and_young_ones_stay(page_files: Path) -> None:
    stored(b"old", 31 * DAY)
    young = stored(b"young", 29 * DAY)
    assert retention.purge_pages(dry_run=True) == 1
    assert len(files(page_files)) == 2
    assert retention.purge_pages() == 1
    assert left() == {young}
    assert [file.name for file in files(page_files)] == [f"{young}.gz"]


def test_the_newest_page_of_a_product_and_the_proof_of_a_change_stay() -> None:
    newest, proof, other = (stored(body, 400 * DAY) for body in (b"newest", b"proof", b"other"))
    ProductFactory.create(page_hash=newest)
    change = ChangeFactory.create(page_hash=proof)
    assert purge_pages()["pages"] == 1
    assert left() == {newest, proof}
    change.delete()
    purge_pages()
    assert left() == {newest}
    assert other not in left()


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ages=st.lists(st.tuples(st.integers(0, 60 * 24), st.booleans()), max_size=12))
def test_whatever_is_stored_only_what_is_old_and_unneeded_goes(
    settings: Settings, page_files: Path, ages: list[tuple[int, bool]]
) -> None:
    settings.PAGE_KEEPERS = {"test": "tests.crawling.test_page_retention.keep_needed"}
    retention.BATCH, before = 3, retention.BATCH
    StoredPage.objects.all().delete()
    needed.clear()
    expected = set()
    for number, (hours, is_needed) in enumerate(ages):
        digest = stored(b"page %d" % number, hours * HOUR)
        needed.update({digest} if is_needed else ())
        if is_needed or hours < 30 * 24:
            expected.add(digest)
    retention.purge_pages()
    retention.BATCH = before
    assert left() == expected
    assert all(pages.read_content(digest) for digest in expected)


def test_files_without_a_row_are_swept_once_they_are_an_hour_old(page_files: Path) -> None:
    kept, lost, young = (stored(body, 0 * DAY) for body in (b"kept", b"lost", b"young"))
    StoredPage.objects.exclude(content_hash=kept).delete()
    draft = page_files / f"{pages.key_of(kept)}.1.1.tmp"
    draft.write_bytes(b"half")
    past = time.time() - 7200
    for path in (draft, *(page_files / pages.key_of(digest) for digest in (kept, lost))):
        os.utime(path, (past, past))
    folders = [f"{n:02x}" for n in range(256)]
    assert retention.sweep_orphans(folders=folders, dry_run=True) == 2
    assert retention.sweep_orphans(folders=folders) == 2
    assert {file.name for file in files(page_files)} == {f"{kept}.gz", f"{young}.gz"}


def test_all_folders_are_swept_within_eight_days(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    today = timezone.now()
    for day in range(8):
        monkeypatch.setattr(timezone, "now", lambda day=day: today + day * DAY)
        seen.update(retention._folders_of_today())
    assert len(seen) == 256
