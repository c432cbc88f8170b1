"""Stored pages that nobody needs any more.

A page goes when it was not seen for ``PAGE_RETENTION_DAYS`` and none of the
``PAGE_KEEPERS`` names it. Its row goes first, its file after it; files that a crash left
without a row are found by ``sweep_orphans``.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Collection, Iterator

from django.conf import settings
from django.core.files.storage import storages
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string

from crawling import pages
from crawling.models import PageValidator, StoredPage

logger = logging.getLogger(__name__)

Keeper = Callable[[Collection[str]], set[str]]
# Removing holds up the writers: a batch is a moment.
BATCH = 200
# A file that young may belong to a batch that is being written.
ORPHAN_AGE = dt.timedelta(hours=1)
# Of 256 folders; all of them are looked through within eight days.
FOLDERS_PER_SWEEP = 32


def purge_pages(*, dry_run: bool = False) -> int:
    """Remove what is old and not kept; answers how many pages went, or would go."""
    cutoff = timezone.now() - dt.timedelta(days=settings.PAGE_RETENTION_DAYS)
    removed = 0
    for batch in _old(cutoff):
        doomed = set(batch) - _kept(batch)
        removed += len(doomed) if dry_run else _remove(doomed, cutoff)
    return removed


def _old(cutoff: dt.datetime) -> Iterator[list[str]]:
    """Hashes of old pages in batches, oldest first; those that are kept are passed once."""
    after = Q()
    while True:
        rows = StoredPage.objects.filter(after, last_seen_at__lt=cutoff)
        found = list(
            rows.order_by("last_seen_at", "id").values_list("content_hash", "last_seen_at", "id")[
                :BATCH
            ]
        )
        if not found:
            return
        _, seen_at, last_id = found[-1]
        after = Q(last_seen_at__gt=seen_at) | Q(last_seen_at=seen_at, id__gt=last_id)
        yield [row[0] for row in found]


def _kept(hashes: Collection[str]) -> set[str]:
    kept: set[str] = set()
    for path in settings.PAGE_KEEPERS.values():
        keeper: Keeper = import_string(path)
        kept |= keeper(hashes)
    return kept


def _remove(hashes: Collection[str], cutoff: dt.datetime) -> int:
    """Nobody writes meanwhile: a page that was named again has been seen since."""
    with pages.guard(alone=True):
        rows = StoredPage.objects.filter(content_hash__in=hashes, last_seen_at__lt=cutoff)
        keys = dict(rows.values_list("id", "storage_key"))
        StoredPage.objects.filter(id__in=keys).delete()
        _delete_files(keys.values())
    return len(keys)


def _delete_files(keys: Collection[str]) -> None:
    for key in keys:
        try:
            storages[pages.ALIAS].delete(key)
        except Exception:  # every backend has errors of its own
            logger.exception("file %s stays behind", key)


def purge_validators(*, dry_run: bool = False) -> int:
    """Of URLs that nobody asked for during the retention."""
    cutoff = timezone.now() - dt.timedelta(days=settings.PAGE_RETENTION_DAYS)
    old = PageValidator.objects.filter(updated_at__lt=cutoff)
    return old.count() if dry_run else old.delete()[0]


def sweep_orphans(*, folders: Collection[str] | None = None, dry_run: bool = False) -> int:
    """Remove files that have no row: a crash came between the two."""
    swept = 0
    for folder in folders if folders is not None else _folders_of_today():
        for name in _list(folder, directories=True):
            swept += _sweep(f"{folder}/{name}", dry_run=dry_run)
    return swept


def _folders_of_today() -> list[str]:
    start = timezone.now().toordinal() * FOLDERS_PER_SWEEP
    return [f"{(start + n) % 256:02x}" for n in range(FOLDERS_PER_SWEEP)]


def _list(folder: str, *, directories: bool) -> list[str]:
    try:
        found = storages[pages.ALIAS].listdir(folder)
    except FileNotFoundError:
        return []
    return list(found[0] if directories else found[1])


def _sweep(folder: str, *, dry_run: bool) -> int:
    names = _orphans(folder, _list(folder, directories=False))
    if not names or dry_run:
        return len(names)
    with pages.guard(alone=True):
        orphans = _orphans(folder, names)
        _delete_files([f"{folder}/{name}" for name in orphans])
    return len(orphans)


def _orphans(folder: str, names: list[str]) -> list[str]:
    hashes = {name: name.partition(".")[0] for name in names}
    rows = StoredPage.objects.filter(content_hash__in=hashes.values())
    known = set(rows.values_list("content_hash", flat=True))
    strange = [name for name in names if not name.endswith(".gz") or hashes[name] not in known]
    return [name for name in strange if _is_old(f"{folder}/{name}")]


def _is_old(key: str) -> bool:
    try:
        return storages[pages.ALIAS].get_modified_time(key) < timezone.now() - ORPHAN_AGE
    except FileNotFoundError:
        return False
