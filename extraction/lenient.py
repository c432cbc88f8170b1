"""JSON as pages carry it: read strictly first, then past its usual dirt."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import orjson

# A block larger than this is data for a program, not a statement about the page.
LARGEST = 4_000_000
MENDED = 1_000_000
OPENING = re.compile(r"^\s*(?:(?://|/\*)?\s*(?:<!--|<!\[CDATA\[)\s*(?:\*/)?)+")
CLOSING = re.compile(r"(?:(?://|/\*)?\s*(?:-->|\]\]>)\s*(?:\*/)?\s*)+;?\s*$")
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
DOUBLE_COMMA = re.compile(r",(\s*,)+")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
LINE_COMMENT = re.compile(r"(?m)^\s*//.*$|/\*.*?\*/", re.DOTALL)
MISSING_COMMA = re.compile(r"""(["\]}\d])\s*\n(\s*")""")
BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu])')
JSON_START = re.compile(r"[\"]|\{\s*[\"}]|\[\s*[\"\[\]{\d.tfnNI-]")
decoder = json.JSONDecoder(strict=False)


def parse(raw: bytes) -> Any:
    """The value, or None when nothing can be made of it."""
    if len(raw) > LARGEST:
        return None
    try:
        return orjson.loads(raw)
    except ValueError:
        return parse_dirty(raw.decode("utf-8", "replace")) if len(raw) <= MENDED else None


def parse_dirty(text: str) -> Any:
    text = CLOSING.sub("", OPENING.sub("", text.lstrip("\ufeff\u200b \r\n\t"))).strip().rstrip(";")
    for mend in (_plain, _commas, _unescaped, _comments, _joined):
        try:
            value = mend(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    return None


def parse_prefix(text: str, position: int = 0) -> tuple[Any, int]:
    """The JSON value a script text has there, whatever follows, and where it ends."""
    # What a program writes is seldom JSON, and a refusal counts all lines before it.
    if JSON_START.match(text, position) is None:
        return None, position
    try:
        return decoder.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position


def _plain(text: str) -> Any:
    return decoder.raw_decode(text)[0]


def _commas(text: str) -> Any:
    text = CONTROL.sub(" ", DOUBLE_COMMA.sub(",", text))
    return decoder.raw_decode(BAD_ESCAPE.sub(r"\\\\", TRAILING_COMMA.sub(r"\1", text)))[0]


def _unescaped(text: str) -> Any:
    """Some templates escape the whole block, some only its quotes."""
    return _commas(html.unescape(text)) if "&" in text else _refuse()


def _comments(text: str) -> Any:
    return _commas(MISSING_COMMA.sub(r"\1,\n\2", LINE_COMMENT.sub("", text)))


def _joined(text: str) -> Any:
    """Several values one after the other, or a value cut short at its end."""
    for tail in ("}", "]", "}}", "]}", "}]}", '"}', '"}}'):
        try:
            return _commas(text + tail)
        except ValueError:
            continue
    return _refuse()


def _refuse() -> Any:
    raise ValueError("no JSON in any reading")
