"""Tags with attributes beyond reason, cut before a tree is built: its cost grows with their number squared."""

from __future__ import annotations

import re

# A smaller page cannot hold enough of them to take half a second.
SMALL = 60_000
# Real tags have under a hundred; one attribute may well be 200 kB of data.
MOST = 500
ATTRIBUTE = rb"""(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+)"""
NAMED = rb"<[a-zA-Z][^\s/>]*+"
# What stands in these is no tag. A space before an attribute counts as one.
RAW = b"|".join(
    rb"<%s(?=[\s/>])%s{0,%d}+>(?:[^<]++|<(?!/%s))*+" % (name, ATTRIBUTE, 2 * MOST, name)
    for name in (b"script", b"style", b"textarea", b"title")
)
READ = re.compile(
    rb"(?:[^<]++|<(?![a-zA-Z!])|<!--(?:[^-]++|-(?!->))*+|<!|%s|%s%s{0,%d}+>)*+"
    % (RAW, NAMED, ATTRIBUTE, 2 * MOST),
    re.IGNORECASE,
)
FEW = re.compile(rb"%s%s{0,%d}+" % (NAMED, ATTRIBUTE, 2 * MOST))
ALL = re.compile(rb"%s%s*+" % (NAMED, ATTRIBUTE))


def uncrowded(body: bytes) -> bytes:
    """The body itself, or one whose tags keep only their first attributes."""
    if len(body) < SMALL:
        return body
    kept = []
    begin = 0
    stop = _end(READ, body, 0)
    while stop < len(body):
        cut = _end(FEW, body, stop)
        kept.append(body[begin:cut])
        begin = _end(ALL, body, stop)
        stop = _end(READ, body, begin)
    return b"".join([*kept, body[begin:]]) if kept else body


def _end(pattern: re.Pattern[bytes], body: bytes, start: int) -> int:
    found = pattern.match(body, start)
    return start if found is None else found.end()
