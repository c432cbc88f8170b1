"""Pages of products that are gone: delisted when a second look finds nothing either."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.db import connection

from common.urls import host_of
from crawling.fetching import Page
from extraction.items import NoProduct, PageKind
from monitoring.changes import Kind, News

if TYPE_CHECKING:
    from monitoring.snapshots import Known

MARK = """
    UPDATE monitoring_product p SET
        missing_at = COALESCE(p.missing_at, v.seen_at),
        delisted_at = CASE WHEN v.gone THEN v.seen_at ELSE p.delisted_at END,
        last_crawled_at = v.seen_at, updated_at = now(),
        last_changed_at = CASE WHEN v.gone THEN v.seen_at ELSE p.last_changed_at END
    FROM unnest(%s::uuid[], %s::timestamptz[], %s::bool[]) AS v(id, seen_at, gone)
    WHERE p.id = v.id
"""
DELISTED = News(Kind.DELISTED, "listed", "delisted", "gone at two looks")
RELISTED = News(Kind.RELISTED, "delisted", "listed", "back after it was delisted")


@dataclass(frozen=True, slots=True)
class Absence:
    """A look at a product that is not there."""

    known: Known
    page: Page

    @property
    def is_second(self) -> bool:
        known = self.known
        return (
            known.delisted_at is None
            and known.missing_at is not None
            and known.missing_at < self.page.fetched_at
        )

    @property
    def wants_second(self) -> bool:
        return self.known.missing_at is None and self.known.delisted_at is None

    @property
    def news(self) -> tuple[News, ...]:
        return (DELISTED,) if self.is_second else ()


def is_back(known: Known, page: Page) -> bool:
    """Delisted, and there again; an older page that is read again does not say so."""
    return known.delisted_at is not None and known.delisted_at <= page.fetched_at


def says_gone(page: Page, item: NoProduct) -> bool:
    """A page that says so itself, or the front page in the product's place."""
    return item.kind == PageKind.SOFT_404 or _is_front_page(page)


def _is_front_page(page: Page) -> bool:
    asked, came = urlsplit(page.claim.url), urlsplit(page.url)
    moved = asked.path.strip("/") != "" and came.path.strip("/") == "" and not came.query
    return moved and host_of(page.url) != ""


def mark(absences: Sequence[Absence]) -> None:
    if not absences:
        return
    ids: list[uuid.UUID] = [absence.known.id for absence in absences]
    times = [absence.page.fetched_at for absence in absences]
    gone = [absence.is_second for absence in absences]
    with connection.cursor() as cursor:
        cursor.execute(MARK, [ids, times, gone])
