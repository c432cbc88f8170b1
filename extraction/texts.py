"""Values of structured data as clean text, links and lists, whatever their shape."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import urljoin

UNFIT = dict.fromkeys((0x00, 0xFFFE, 0xFFFF))
Node = dict[str, Any]
# An absolute address that no rule of joining would change.
PLAIN_LINK = re.compile(r"https?://[\w.-]+/[\w./%,+=@:~!-]*(?:\?[\w./%,+=&@:~!-]+)?", re.ASCII)


def words(text: str) -> frozenset[str]:
    """Names written as one text, for the tables of this room."""
    return frozenset(text.split())


def clean(text: str, limit: int = 2048) -> str:
    """Text PostgreSQL and XML take: no NUL, no lone surrogate, no non-character, white space folded."""
    text = text[: limit * 4]
    if "\x00" in text or not text.isascii():
        text = text.translate(UNFIT).encode("utf-8", "ignore").decode()
    return " ".join(text.split())[:limit]


def text_of(value: Any, limit: int = 2048) -> str:
    """The text a value stands for: plain, in a list, or as a JSON-LD value object."""
    for _ in range(3):
        if isinstance(value, list):
            value = value[0] if value else ""
        elif isinstance(value, dict):
            value = value.get("@value") or value.get("name") or value.get("@id") or ""
    if isinstance(value, str):
        return clean(unescape(value[: limit * 4]), limit)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return _number_text(value)


def _number_text(value: float) -> str:
    # An integer of more digits than Python will print is no text of a shop.
    if isinstance(value, int) and value.bit_length() > 256:
        return ""
    return str(value)


def unescape(text: str) -> str:
    """Entities out; shops escape some texts twice."""
    if "&" not in text:
        return text
    once = html.unescape(text)
    return html.unescape(once) if "&" in once and ";" in once else once


def link_of(value: Any, url: str) -> str:
    """An absolute http(s) link, or nothing."""
    if isinstance(value, dict):
        value = value.get("url") or value.get("contentUrl") or value.get("@id") or ""
    text = text_of(value)
    if not text:
        return ""
    if PLAIN_LINK.fullmatch(text):
        return text if len(text) <= 2048 else ""
    try:
        link = urljoin(url, text)
    except ValueError:
        return ""
    return link if link.startswith(("http://", "https://")) and len(link) <= 2048 else ""


def links_of(value: Any, url: str, limit: int = 20) -> tuple[str, ...]:
    found = (link_of(entry, url) for entry in every(value)[: limit * 2])
    return tuple(dict.fromkeys(link for link in found if link))[:limit]


def every(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def dicts(value: Any) -> list[Node]:
    return [entry for entry in every(value) if isinstance(entry, dict)]
