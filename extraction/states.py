"""The data a page's scripts carry: application state, data layers, product objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from extraction.lenient import LARGEST, parse, parse_dirty, parse_prefix
from extraction.naming import words_of
from extraction.walks import Walk

MOST_STATES = 60
# Where a script gives a value to a name, or hands one to a data layer.
ASSIGNED = re.compile(r"=\s*(?=[\[{]|JSON\.parse\()")
TARGET = re.compile(r"([\w$]{2,60})[\"']?\s*\]?\s*\Z")
PUSHED = re.compile(r"(?:[lL]ayer\.push\(|[\"']view_item[\"']\s*,)\s*(?=\{)")
# Plain texts by which such a place is found fast, and the letters of a match before each.
PUSHES = (("ayer.push(", 1), ("view_item", 1))
MOST_PUSHES = 50
# Names whose object literals are worth mending; the rest must be JSON as it stands.
TELLING = re.compile(r"data|product|layer|meta|item|state|sku|offer", re.IGNORECASE)
QUOTED = re.compile(r"JSON\.parse\(\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")
# A program's object literal made JSON: bare keys quoted, single quotes doubled.
BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_$][\w$]*)\s*:")
SINGLE = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
WORTH = ("price", "Price", "amount", "variants")
# This share of a name's words must be said by a script that may hold the product.
COVERED = 0.75
LITERAL = 30_000
MOST_LITERALS = 12
MOST_SITES = 3000


def states(walk: Walk, names: list[str], number: str) -> Iterator[Any]:
    """Every value found that speaks of a price and of this product, in page order."""
    left = MOST_STATES
    wanted = [_plain_words(name) for name in names if name]
    for script in walk.every("script"):
        attributes = script.attributes
        kind = (attributes.get("type") or "").lower()
        text = "" if "src" in attributes or "ld+json" in kind else script.text(deep=True)
        if not text or len(text) > LARGEST or not _is_worth(text):
            continue
        if not _speaks_of(text, wanted, number):
            continue
        for value in _values(text, kind):
            yield value
            left -= 1
            if left <= 0:
                return


def _is_worth(text: str) -> bool:
    return any(word in text for word in WORTH)


def _plain_words(name: str) -> tuple[int, list[str]]:
    """How many words a name has, and those that no escape can hide."""
    words = words_of(name)
    written = name.casefold()
    return len(words), [word for word in words if word.isascii() and word in written]


def _speaks_of(text: str, wanted: list[tuple[int, list[str]]], number: str) -> bool:
    if number and number in text:
        return True
    text = text.lower()
    for count, words in wanted:
        missing = sum(word not in text for word in words)
        if missing <= count * (1 - COVERED):
            return True
    return False


def _values(text: str, kind: str) -> Iterator[Any]:
    if "json" in kind or "magento-init" in kind:
        value = parse(text.encode("utf-8", "replace"))
        if value is not None:
            yield value
        return
    literals = MOST_LITERALS
    read_until = 0
    for position, telling in _sites(text):
        if position < read_until:
            continue
        value, read_until = _value_at(text, position)
        if value is None and telling and literals:
            literals -= 1
            value = _literal(text[position : position + LITERAL])
        if isinstance(value, dict | list) and value:
            yield value


def _sites(text: str) -> Iterator[tuple[int, bool]]:
    """Where values begin, and whether what they are given to tells of a product."""
    for found in islice(ASSIGNED.finditer(text), MOST_SITES):
        name = TARGET.search(text, max(0, found.start() - 80), found.start())
        yield found.end(), bool(name and TELLING.search(name.group(1)))
    for mark, before in PUSHES:
        yield from ((place, True) for place in _pushed(text, mark, before))


def _pushed(text: str, mark: str, before: int) -> Iterator[int]:
    position = text.find(mark)
    for _ in range(MOST_PUSHES):
        if position < 0:
            return
        if found := PUSHED.match(text, max(0, position - before)):
            yield found.end()
        position = text.find(mark, position + len(mark))


def _value_at(text: str, position: int) -> tuple[Any, int]:
    """The value, and where it ends."""
    if text.startswith("JSON.parse", position):
        quoted = QUOTED.match(text, position)
        inner = parse_prefix(_double(quoted.group(1)))[0] if quoted else None
        end = quoted.end() if quoted else position
        return (parse_dirty(inner) if isinstance(inner, str) else None), end
    return parse_prefix(text, position)


def _double(quoted: str) -> str:
    if quoted.startswith('"'):
        return quoted
    return '"' + quoted[1:-1].replace('\\"', '"').replace('"', '\\"').replace("\\'", "'") + '"'


def _literal(text: str) -> Any:
    """An object literal of JavaScript, when its end is near and its values are plain."""
    if not _is_worth(text):
        return None
    text = text[: _closing(text)]
    text = SINGLE.sub(lambda m: '"' + m.group(1).replace('"', '\\"') + '"', text)
    return parse_dirty(BARE_KEY.sub(r'\1"\2":', text))


def _closing(text: str) -> int:
    depth = 0
    for position, char in enumerate(text):
        if char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return 0
