"""Content encodings of HTTP bodies, unpacked as they come up to a limit and never beyond it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import brotli  # type: ignore[import-untyped]
from isal import isal_zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# What is offered to servers is what is decoded here.
ACCEPTED_ENCODINGS = "gzip, deflate, br, zstd"
# A page of text hardly packs better than 30:1; below a mebibyte a bomb is harmless.
MAX_RATIO = 100
RATIO_FREE_BYTES = 1024 * 1024
# 8 MiB, what RFC 9659 asks of a browser: a larger window is a grab at our memory.
ZSTD_WINDOW_LOG = 23
# Unpacked at a time; brotli and zstd give back no less than they have ready.
STEP_BYTES = 256 * 1024

# The stub of isal calls its error an instance.
BROKEN: tuple[type[Exception], ...] = (
    cast("type[Exception]", isal_zlib.error),
    brotli.error,
    zstd.ZstdError,
)

_GZIP_WBITS = 31
_ZLIB_WBITS = 15
_RAW_WBITS = -15
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class UnknownEncoding(Exception):
    """The body is packed in a way that was not offered."""


class DecodedTooLarge(Exception):
    """The body grows past the limit."""


class BrokenBody(Exception):
    """The body is not what its encoding says, or ends too early."""


class Decoder(Protocol):
    def feed(self, chunk: bytes) -> None: ...
    def finish(self) -> bytes: ...
    def so_far(self) -> bytes: ...


def decoder_of(encoding: str, max_bytes: int) -> Decoder:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return Plain()
    if encoding not in UNPACKERS:
        raise UnknownEncoding(encoding)
    return Unpacking(UNPACKERS[encoding], max_bytes)


def decode_body(raw: bytes, encoding: str, max_bytes: int) -> bytes:
    """All of a body that is here already."""
    decoder = decoder_of(encoding, max_bytes)
    decoder.feed(raw)
    return decoder.finish()


class Plain:
    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        self._parts.append(chunk)

    def finish(self) -> bytes:
        return self.so_far()

    def so_far(self) -> bytes:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Unpacking:
    """A body of one or more packed streams, counted while it grows."""

    def __init__(self, begin: Callable[[bytes], Stream], max_bytes: int) -> None:
        self._begin = begin
        self._max_bytes = max_bytes
        self._stream: Stream | None = None
        self._parts: list[bytes] = []
        self._fed = self._size = 0

    def feed(self, chunk: bytes) -> None:
        self._fed += len(chunk)
        limit = min(self._max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * self._fed))
        stream = self._stream = self._stream or self._begin(chunk)
        try:
            for part in stream.unpack(chunk, lambda: limit - self._size + 1):
                self._size += len(part)
                self._parts.append(part)
                if self._size > limit:
                    raise DecodedTooLarge
        except BROKEN as error:
            raise BrokenBody(str(error)) from None

    def finish(self) -> bytes:
        if self._stream is not None and not self._stream.ended:
            raise BrokenBody("the body ends too early")
        return self.so_far()

    def so_far(self) -> bytes:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Stream(Protocol):
    """Gives what it unpacks in parts, none larger than there is room for by much."""

    ended: bool

    def unpack(self, chunk: bytes, room: Callable[[], int]) -> Iterator[bytes]: ...


class Inflating:
    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inflater = isal_zlib.decompressobj(wbits=wbits)
        self.ended = False

    def unpack(self, chunk: bytes, room: Callable[[], int]) -> Iterator[bytes]:
        while chunk:
            if self.ended:
                # Only gzip has members, and what does not begin like one is left unread.
                if self._wbits != _GZIP_WBITS or not chunk.startswith(_GZIP_MAGIC[: len(chunk)]):
                    return
                self._inflater = isal_zlib.decompressobj(wbits=self._wbits)
            # As much as is allowed and one byte more, by which a bomb is known.
            yield self._inflater.decompress(chunk, room())
            self.ended = self._inflater.eof
            chunk = self._inflater.unused_data if self.ended else b""


class Unbrotling:
    def __init__(self) -> None:
        self._decoder: Any = brotli.Decompressor()
        self.ended = False

    def unpack(self, chunk: bytes, room: Callable[[], int]) -> Iterator[bytes]:
        while not self.ended:
            part = self._decoder.process(chunk, output_buffer_limit=STEP_BYTES)
            yield part
            chunk = b""
            self.ended = self._decoder.is_finished()
            if not part and self._decoder.can_accept_more_data():
                return


class Unzstding:
    def __init__(self) -> None:
        self._decoder = _zstd_decoder()
        self.ended = False

    def unpack(self, chunk: bytes, room: Callable[[], int]) -> Iterator[bytes]:
        while chunk or not (self.ended or self._decoder.needs_input):
            if self.ended:
                if not chunk.startswith(_ZSTD_MAGIC[: len(chunk)]):
                    return
                self._decoder = _zstd_decoder()
            yield self._decoder.decompress(chunk, STEP_BYTES)
            self.ended = self._decoder.eof
            chunk = self._decoder.unused_data if self.ended else b""


def _zstd_decoder() -> Any:
    limit = zstd.DecompressionParameter.window_log_max
    return zstd.ZstdDecompressor(options={limit: ZSTD_WINDOW_LOG})


def _deflate(chunk: bytes) -> Stream:
    # Half of the servers send zlib as the standard says, half send bare deflate.
    with_header = chunk[0] & 0x0F == 8 and (
        len(chunk) < 2 or int.from_bytes(chunk[:2], "big") % 31 == 0
    )
    return Inflating(_ZLIB_WBITS if with_header else _RAW_WBITS)


UNPACKERS: dict[str, Callable[[bytes], Stream]] = {
    "gzip": lambda _: Inflating(_GZIP_WBITS),
    "x-gzip": lambda _: Inflating(_GZIP_WBITS),
    "deflate": _deflate,
    "br": lambda _: Unbrotling(),
    "zstd": lambda _: Unzstding(),
}
