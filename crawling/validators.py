"""What a URL said of its version when it was last read: asked again, it may answer that
nothing changed. Only pages that could be read and are stored have a validator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from django.db import connection

from crawling.models import PageValidator

ETAG_CHARS = 512
LAST_MODIFIED_CHARS = 64


@dataclass(frozen=True, slots=True)
class Validator:
    content_hash: str
    etag: str
    last_modified: str
    final_url_hash: str

    @classmethod
    def of(cls, content_hash: str, etag: str, last_modified: str, final_url_hash: str) -> Self:
        """What is too long to be kept is left out."""
        return cls(
            content_hash,
            etag if len(etag) <= ETAG_CHARS else "",
            last_modified if len(last_modified) <= LAST_MODIFIED_CHARS else "",
            final_url_hash,
        )

    @property
    def conditions(self) -> dict[str, str]:
        """The headers of a conditional request."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: text for name, text in headers.items() if text}


# Without the stored page nobody could read what "not modified" refers to.
LOAD = """
    SELECT v.url_hash, v.content_hash, v.etag, v.last_modified, v.final_url_hash
    FROM crawling_pagevalidator v JOIN crawling_storedpage p ON p.content_hash = v.content_hash
    WHERE v.url_hash = ANY(%s)
"""
KEEP = """
    INSERT INTO crawling_pagevalidator
        (url_hash, content_hash, etag, last_modified, final_url_hash, updated_at)
    SELECT url_hash, content_hash, etag, last_modified, final_url_hash, now()
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
        AS v(url_hash, content_hash, etag, last_modified, final_url_hash)
    ORDER BY url_hash
    ON CONFLICT (url_hash) DO UPDATE SET
        content_hash = excluded.content_hash, etag = excluded.etag,
        last_modified = excluded.last_modified, final_url_hash = excluded.final_url_hash,
        updated_at = excluded.updated_at
"""


def load(url_hashes: Sequence[str]) -> dict[str, Validator]:
    if not url_hashes:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(LOAD, [list(url_hashes)])
        return {row[0]: Validator(*row[1:]) for row in cursor.fetchall()}


def keep(seen: dict[str, Validator]) -> None:
    """Remember what these pages said, by the hash of their URL."""
    if not seen:
        return
    rows = list(seen.values())
    names = Validator.__slots__
    columns = [[getattr(row, name) for row in rows] for name in names]
    with connection.cursor() as cursor:
        cursor.execute(KEEP, [list(seen), *columns])


def forget(url_hashes: Collection[str]) -> None:
    """The next look must bring the whole page: this one could not be read."""
    if url_hashes:
        ordered = PageValidator.objects.filter(url_hash__in=url_hashes).order_by("url_hash")
        locked = list(ordered.select_for_update().values_list("url_hash", flat=True))
        PageValidator.objects.filter(url_hash__in=locked).delete()
