"""Content encodings of HTTP bodies, decoded up to a limit and never beyond it."""

from __future__ import annotations

from isal import isal_zlib

# What is offered to servers is what is decoded here.
ACCEPTED_ENCODINGS = "gzip, deflate"
# A page of text hardly packs better than 30:1; below a mebibyte a bomb is harmless.
MAX_RATIO = 100
RATIO_FREE_BYTES = 1024 * 1024

_GZIP_WBITS = 31
_ZLIB_WBITS = 15
_RAW_WBITS = -15
_GZIP_MAGIC = b"\x1f\x8b"


class UnknownEncoding(Exception):
    """The body is packed in a way that was not offered."""


class DecodedTooLarge(Exception):
    """The body grows past the limit."""


class BrokenBody(Exception):
    """The body is not what its encoding says, or ends too early."""


def decode_body(raw: bytes, encoding: str, max_bytes: int) -> bytes:
    encoding = encoding.strip().lower()
    if not raw or encoding in {"", "identity"}:
        return raw
    limit = min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * len(raw)))
    if encoding in {"gzip", "x-gzip"}:
        return _inflate(raw, _GZIP_WBITS, limit)
    if encoding == "deflate":
        # Half of the servers send zlib as the standard says, half send bare deflate.
        has_header = raw[0] & 0x0F == 8 and int.from_bytes(raw[:2], "big") % 31 == 0
        return _inflate(raw, _ZLIB_WBITS if has_header else _RAW_WBITS, limit)
    raise UnknownEncoding(encoding)


def _inflate(raw: bytes, wbits: int, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    while True:
        inflater = isal_zlib.decompressobj(wbits=wbits)
        try:
            part: bytes = inflater.decompress(raw, room + 1)
        except isal_zlib.error as error:  # type: ignore[misc]  # the stub calls it an instance
            raise BrokenBody(str(error)) from None
        room -= len(part)
        if room < 0:
            raise DecodedTooLarge
        if not inflater.eof:
            raise BrokenBody("the body ends too early")
        parts.append(part)
        raw = inflater.unused_data
        if wbits != _GZIP_WBITS or not raw.startswith(_GZIP_MAGIC):
            return part if len(parts) == 1 else b"".join(parts)
