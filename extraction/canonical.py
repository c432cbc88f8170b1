"""The address a page calls its own."""

from __future__ import annotations

import html
import re
from urllib.parse import urljoin

# Beyond the head of a page there is none.
HEAD = 300_000
LINK = re.compile(rb"<link\b[^>]{0,2000}>", re.IGNORECASE)
REL = re.compile(rb"""\brel\s*=\s*["']?canonical\b""", re.IGNORECASE)
HREF = re.compile(rb"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def canonical_link(body: bytes, url: str) -> str:
    """Absolute; empty where the page names none."""
    for tag in LINK.findall(body[:HEAD]):
        found = HREF.search(tag) if REL.search(tag) else None
        if found:
            text = next(part for part in found.groups() if part is not None)
            try:
                return urljoin(url, html.unescape(text.decode("utf-8", "replace")).strip())
            except ValueError:
                return ""
    return ""
