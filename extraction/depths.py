"""Pages nested beyond reason or with options beyond count, cut before a tree is built: its cost grows with depth squared."""

from __future__ import annotations

import re
from itertools import islice

# 20,000 open elements in 60 kB take a second; a smaller page cannot do worse.
SMALL = 60_000
CHUNK = 65_536
# Real pages stay under 200; unclosed paragraphs and void elements make this count run high.
SUSPECT = 10_000
DEEPEST = 3000
# Each option of a select looks at all before it, closed or not; a list of all towns has fewer.
MOST_OPTIONS = 8000
OPTION = re.compile(rb"<[oO][pP][tT][iI][oO][nN]")
TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
VOID = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li option".split()
)


def shallow(body: bytes) -> bytes:
    """The body itself, or its beginning up to where it becomes absurd."""
    if len(body) < SMALL or body.count(b"<") <= SUSPECT:
        return body
    body = _choosable(body)
    opened = 0
    for start in range(0, len(body), CHUNK):
        chunk = body[start : start + CHUNK]
        opened += chunk.count(b"<") - 2 * chunk.count(b"</")
        if opened > SUSPECT:
            return _cut(body)
    return body


def _choosable(body: bytes) -> bytes:
    options = OPTION.finditer(body)
    first_too_many = next(islice(options, MOST_OPTIONS, None), None)
    return body[: first_too_many.start()] if first_too_many else body


def _cut(body: bytes) -> bytes:
    depth = 0
    for tag in TAG.finditer(body):
        closing, name = tag.groups()
        if name.lower() not in VOID:
            depth = max(0, depth - 1) if closing else depth + 1
        if depth > DEEPEST:
            return body[: tag.start()]
    return body
