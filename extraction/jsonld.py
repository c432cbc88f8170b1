"""JSON-LD blocks of a page, found without building a tree and read past their dirt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

MARK = b"ld+json"
# A page may nest its products this deep; deeper is an attack or an accident.
DEPTH = 12
COMMENT = re.compile(r"^\s*(?:<!--|<!\[CDATA\[|//\s*<!\[CDATA\[)|(?:-->|\]\]>|//\s*\]\]>)\s*$")
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
PRODUCTS = {"product", "productgroup", "individualproduct", "productmodel", "vehicle"}
LISTS = ("itemlist", "breadcrumblist", "searchresultspage", "collectionpage")
# Where a page names products that are not its own.
RELATED = ("isrelatedto", "issimilarto", "isaccessoryorsparepartfor", "itemlistelement")

Node = dict[str, Any]


def blocks(body: bytes) -> Iterator[Any]:
    """Every block that can be read; a broken one does not spoil the others."""
    position = 0
    while (mark := body.find(MARK, position)) >= 0:
        position = mark + len(MARK)
        start = body.find(b">", mark)
        opening = body.rfind(b"<", max(0, mark - 300), mark)
        if start < 0 or body[opening : opening + 7].lower() != b"<script":
            continue
        end = body.find(b"</", start)
        while end >= 0 and body[end + 2 : end + 8].lower() != b"script":
            end = body.find(b"</", end + 2)
        if end < 0:
            return
        position = end
        parsed = parse(body[start + 1 : end])
        if parsed is not None:
            yield parsed


def parse(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    text = COMMENT.sub("", raw.decode("utf-8", "replace").lstrip("\ufeff").strip()).strip()
    for candidate in (text, TRAILING_COMMA.sub(r"\1", text)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def products(parsed: Any) -> Iterator[Node]:
    """The products a block is about, not those it merely mentions."""
    yield from _walk(parsed, DEPTH)


def _walk(value: Any, depth: int) -> Iterator[Node]:
    if depth == 0:
        return
    if isinstance(value, list):
        for entry in value:
            yield from _walk(entry, depth - 1)
    elif isinstance(value, dict):
        if types(value) & PRODUCTS:
            yield value
        else:
            yield from _walk(_own_parts(value), depth - 1)


def _own_parts(node: Node) -> list[Any]:
    if types(node).intersection(LISTS):
        return []
    parts = ((key, part) for key, part in node.items() if isinstance(part, dict | list))
    return [part for key, part in parts if key.lower() not in RELATED]


def types(node: Node) -> set[str]:
    kinds = node.get("@type", ())
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return {str(kind).rsplit("/", 1)[-1].rsplit(":", 1)[-1].lower() for kind in kinds if kind}
