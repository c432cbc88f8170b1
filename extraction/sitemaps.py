"""Sitemaps: a list of pages, or a list of further sitemaps; XML, plain text, packed or not."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from xml.parsers import expat

from common.encodings import BrokenBody, DecodedTooLarge, decode_body

# What sitemaps.org allows one file to hold.
MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
LONGEST_URL = 2048
GZIP = b"\x1f\x8b"
CHUNK = 256 * 1024


class NotASitemap(Exception):
    """Says in a few words why the file cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    url: str
    lastmod: dt.datetime | None = None


@dataclass(slots=True)
class Sitemap:
    pages: list[Entry] = field(default_factory=list)
    children: list[Entry] = field(default_factory=list)
    # There was more than a file may hold.
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.pages) + len(self.children)


def read_sitemap(body: bytes) -> Sitemap:
    """What the file lists, in its order; raises ``NotASitemap``."""
    body = _unpacked(body)
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"http://", b"https://")):
        return _read_lines(body)
    if not start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        raise NotASitemap("neither XML nor a list of URLs")
    return _Reading().read(start)


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(GZIP):
        return body
    try:
        return decode_body(body, "gzip", MAX_BYTES)
    except DecodedTooLarge:
        raise NotASitemap("it unpacks to more than is allowed") from None
    except BrokenBody:
        raise NotASitemap("the packed file is broken") from None


def _read_lines(body: bytes) -> Sitemap:
    found = Sitemap()
    for line in body.decode("utf-8", "replace").splitlines():
        url = line.strip().lstrip("\ufeff")
        if url.startswith(("http://", "https://")) and len(url) <= LONGEST_URL:
            if len(found) >= MAX_URLS:
                found.is_cut = True
                break
            found.pages.append(Entry(url))
    return found


class _Enough(Exception):
    """As many as a file may hold were read."""


class _Reading:
    """Expat's events, without anything that XML can do beyond elements and text: a DTD is
    refused, so there are no entities to expand and nothing to fetch."""

    def __init__(self) -> None:
        self._found = Sitemap()
        self._path: list[str] = []
        self._text: list[str] = []
        self._url = self._lastmod = ""

    def read(self, body: bytes) -> Sitemap:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.buffer_text = True
        try:
            for at in range(0, len(body), CHUNK):
                parser.Parse(body[at : at + CHUNK], at + CHUNK >= len(body))
        except _Enough:
            self._found.is_cut = True
        except (expat.ExpatError, ValueError, LookupError):
            # Half a list is better than none: what was read before the break counts.
            if not len(self._found):
                raise NotASitemap("the XML is broken") from None
            self._found.is_cut = True
        return self._found

    def _refuse(self, *_: object) -> None:
        raise NotASitemap("it has a DTD, which no sitemap needs")

    def _start(self, name: str, _attributes: object) -> None:
        local = name.rpartition(" ")[2]
        if not self._path and local not in ("urlset", "sitemapindex"):
            raise NotASitemap(f"its root is {local[:40]}")
        self._path.append(local)
        if len(self._path) == 2:
            self._url = self._lastmod = ""
        self._text.clear()

    def _end(self, _name: str) -> None:
        depth, local = len(self._path), self._path.pop()
        if depth == 3 and local in ("loc", "lastmod"):
            text = "".join(self._text).strip()
            if local == "loc":
                self._url = text
            else:
                self._lastmod = text
        elif depth == 2:
            self._add(local)
        self._text.clear()

    def _add(self, local: str) -> None:
        if not self._url.startswith(("http://", "https://")) or len(self._url) > LONGEST_URL:
            return
        if len(self._found) >= MAX_URLS:
            raise _Enough
        entry = Entry(self._url, _moment(self._lastmod))
        (self._found.children if local == "sitemap" else self._found.pages).append(entry)


def _moment(text: str) -> dt.datetime | None:
    """W3C date and time: a day, or a moment with its zone."""
    try:
        moment = dt.datetime.fromisoformat(text) if text else None
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
