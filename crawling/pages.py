"""Pages as they were fetched: one compressed file per distinct content, named by its hash.

A file is written before the transaction that adds its row, and removed after the one
that deletes it: a crash leaves at most a file without a row, which ``retention`` finds.
Writers share ``guard`` while they are at it, so that nothing is removed under them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.core.files.storage import storages
from django.db import connection
from django.utils import timezone
from isal import igzip, isal_zlib

from common.ids import uuid7
from crawling.models import StoredPage

logger = logging.getLogger(__name__)

ALIAS = "pages"
# Any number nobody else takes.
GUARD = 0x0B5E_0001
# Fast, and a tenth better than level 0; zlib takes five times as long.
LEVEL, GZIP = 1, 31
# Retention counts in days: a page is marked as seen again only this often.
TOUCH = dt.timedelta(days=1)


class PageLost(Exception):
    """The stored page cannot be read: it is missing, or not what its hash says."""


@dataclass(frozen=True, slots=True)
class Content:
    """A page that was seen; without a body it is known and stored already."""

    content_hash: str
    body: bytes = b""
    content_type: str = ""
    # The gzip the shop sent, where it did.
    packed: bytes = b""

    def compressed(self) -> bytes:
        """One whole gzip member ends with the size of its content: then it is kept as it
        came, which saves half the cost of storing."""
        size = int.from_bytes(self.packed[-4:], "little")
        if self.packed and size == len(self.body):
            return self.packed
        packed: bytes = isal_zlib.compress(self.body, LEVEL, GZIP)
        return packed


@dataclass(frozen=True, slots=True)
class Row:
    content: Content
    compressed_size: int


@dataclass(frozen=True, slots=True)
class Known:
    id: uuid.UUID
    last_seen_at: dt.datetime


KNOWN = """
    SELECT content_hash, id, last_seen_at FROM crawling_storedpage WHERE content_hash = ANY(%s)
"""
INSERT = """
    INSERT INTO crawling_storedpage AS old
        (id, content_hash, storage_key, size, compressed_size, content_type, charset,
         first_seen_at, last_seen_at)
    SELECT id, content_hash, storage_key, size, compressed_size, content_type, charset,
           now(), now()
    FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[], %s::int[], %s::text[], %s::text[])
        AS v(id, content_hash, storage_key, size, compressed_size, content_type, charset)
    ORDER BY content_hash
    ON CONFLICT (content_hash) DO UPDATE SET last_seen_at = excluded.last_seen_at
    RETURNING content_hash, id
"""


def key_of(content_hash: str) -> str:
    return f"{content_hash[:2]}/{content_hash[2:4]}/{content_hash}.gz"


def hash_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@contextmanager
def guard(*, alone: bool = False) -> Iterator[None]:
    """Writers hold it together; who removes pages holds it alone."""
    suffix = "" if alone else "_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_lock{suffix}(%s)", [GUARD])
        try:
            yield
        finally:
            cursor.execute(f"SELECT pg_advisory_unlock{suffix}(%s)", [GUARD])


class Storing:
    """The pages of one batch: their files begin to be written at once, their rows come
    with ``record``, in the transaction."""

    def __init__(self, contents: Iterable[Content]) -> None:
        found = {content.content_hash: content for content in contents}
        self.known = _known(list(found))
        fresh = [c for key, c in found.items() if c.body and key not in self.known]
        self._trouble: Exception | None = None
        # Writing lets go of the interpreter: meanwhile the pages are read.
        shares = [fresh[start :: settings.PAGE_WRITERS] for start in range(settings.PAGE_WRITERS)]
        self._writes: list[Future[list[Row]]] = [
            _writers().submit(self._write, share) for share in shares if share
        ]

    def record(self) -> dict[str, uuid.UUID]:
        """Add the rows; answers the ids of the stored pages by their hash."""
        rows = [row for write in self._writes for row in write.result()]
        _touch(self.known.values())
        return {key: known.id for key, known in self.known.items()} | _insert(rows)

    def _write(self, contents: Sequence[Content]) -> list[Row]:
        """Those that could be written. A disk that is full or a bucket that is away costs
        the rest of the batch its files, not its checks."""
        rows: list[Row] = []
        for content in contents:
            if self._trouble is not None:
                break
            try:
                packed = content.compressed()
                storages[ALIAS].put(key_of(content.content_hash), packed)  # type: ignore[attr-defined]
            except Exception as error:  # every backend has errors of its own
                self._trouble = error
                logger.exception("pages cannot be stored: they count, but are not kept")
            else:
                rows.append(Row(content, len(packed)))
        return rows


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(settings.PAGE_WRITERS, "obsrv-pages")


def _known(hashes: list[str]) -> dict[str, Known]:
    if not hashes:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(KNOWN, [hashes])
        return {row[0]: Known(*row[1:]) for row in cursor.fetchall()}


def _touch(known: Iterable[Known]) -> None:
    now = timezone.now()
    stale = sorted(page.id for page in known if page.last_seen_at < now - TOUCH)
    if stale:
        StoredPage.objects.filter(id__in=stale).update(last_seen_at=now)


def _insert(rows: Sequence[Row]) -> dict[str, uuid.UUID]:
    if not rows:
        return {}
    columns = zip(*(_columns(row) for row in rows), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [list(column) for column in columns])
        return dict(cursor.fetchall())


def _columns(row: Row) -> tuple[object, ...]:
    content = row.content
    kind, _, rest = content.content_type.partition(";")
    charset = rest.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    return (
        uuid7(),
        content.content_hash,
        key_of(content.content_hash),
        len(content.body),
        row.compressed_size,
        kind.strip()[:255],
        charset[:40],
    )


def read_page(stored: StoredPage) -> bytes:
    """The page as it was fetched; raises ``PageLost``."""
    return _read(stored.content_hash, stored.storage_key)


def read_content(content_hash: str) -> bytes:
    return _read(content_hash, key_of(content_hash))


def read_contents(content_hashes: Iterable[str]) -> Mapping[str, bytes]:
    """Those that can be read."""

    def read(content_hash: str) -> tuple[str, bytes]:
        try:
            return content_hash, read_content(content_hash)
        except PageLost:
            return content_hash, b""

    found = dict(_writers().map(read, set(content_hashes)))
    return {key: body for key, body in found.items() if body}


def _read(content_hash: str, key: str) -> bytes:
    try:
        with storages[ALIAS].open(key) as file:
            body: bytes = igzip.decompress(file.read())  # type: ignore[no-untyped-call]
    except Exception as error:
        raise PageLost(f"page {content_hash} cannot be read: {error}") from error
    if hash_of(body) != content_hash:
        raise PageLost(f"page {content_hash} is not what was stored")
    return body


def forget(content_hash: str) -> None:
    """A page that is lost is stored again when it is seen again."""
    StoredPage.objects.filter(content_hash=content_hash).delete()
