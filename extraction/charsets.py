"""Any page as UTF-8, decoded at most once: by BOM, header, meta, then by what the bytes allow."""

from __future__ import annotations

import codecs
import re

# Where browsers look for the declaration, with room for long heads.
HEAD = 4096
CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What pages call by these names is, to browsers, the wider Windows set.
WIDER = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "tis-620": "cp874",
}
# Of a text that is not UTF-8, this share of broken sequences is still an accident in one that is.
FEW = 0.3


def to_utf8(body: bytes, content_type: str = "") -> bytes:
    """The body itself wherever it calls itself UTF-8; ``mended`` sees to those that lie."""
    for mark, encoding in BOMS:
        if body.startswith(mark):
            rest = body[len(mark) :]
            return rest if encoding == "utf-8" else _recode(body, encoding)
    declared = _known(CHARSET.search(content_type.encode("ascii", "ignore")))
    declared = declared or _known(CHARSET.search(body[:HEAD]))
    if declared in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        # A meta element that could be read says the page is not UTF-16, whatever it claims.
        return body
    return _recode(body, declared) if declared else _detected(body)


def _known(match: re.Match[bytes] | None) -> str:
    if match is None:
        return ""
    try:
        name = codecs.lookup(match.group(1).decode("ascii", "ignore")).name
    except (LookupError, ValueError):
        return ""
    return WIDER.get(name, name)


def _recode(body: bytes, encoding: str) -> bytes:
    try:
        return body.decode(encoding, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError, UnicodeError):
        return _detected(body)


def mended(body: bytes) -> bytes:
    """UTF-8 as it claims to be; shops that lie about it mostly send Windows-1252."""
    return body if body.isascii() else _detected(body)


def _detected(body: bytes) -> bytes:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(body)
    return body


def _guessed(body: bytes) -> bytes:
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(1 for char in text[:200_000] if ord(char) > 127) - broken
    if broken <= max(3, whole * FEW):
        return text.encode()
    return body.decode("cp1252", "replace").encode()
