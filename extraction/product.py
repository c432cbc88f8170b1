"""What product a page is about: the one door into this room."""

from __future__ import annotations

from extraction.charsets import to_utf8
from extraction.items import Hints, NoProduct, PageKind, ProductItem
from extraction.pages import Page
from extraction.sureness import read_sure
from extraction.weighing import weigh

# Beyond this a page is cut: what names and prices a product stands long before.
LARGEST_PAGE = 6_000_000


def extract_product(
    body: bytes, url: str, *, content_type: str = "", hints: Hints | None = None
) -> ProductItem | NoProduct:
    """The main product of the page; never raises, whatever the bytes."""
    return _extract(body, url, content_type, hints or Hints(), full=False)


def extract_fully(
    body: bytes, url: str, *, content_type: str = "", hints: Hints | None = None
) -> ProductItem | NoProduct:
    """The same answer, found without the shortcuts; the tests compare the two."""
    return _extract(body, url, content_type, hints or Hints(), full=True)


def _extract(
    body: bytes, url: str, content_type: str, hints: Hints, *, full: bool
) -> ProductItem | NoProduct:
    text = to_utf8(body[:LARGEST_PAGE], content_type)
    if not text or text.isspace():
        return NoProduct("the page is empty", PageKind.EMPTY)
    page = Page(text, url, hints, full=full)
    return read_sure(page) or weigh(page)
