"""The one place where the tree of a page is built, whatever its bytes."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from extraction.charsets import mended
from extraction.crowds import uncrowded
from extraction.depths import shallow


def tree_of(body: bytes) -> LexborHTMLParser:
    """Without the crowds that make building it take far longer than the page is large."""
    return LexborHTMLParser(shallow(uncrowded(mended(body))))
