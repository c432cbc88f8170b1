from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest

from common.encodings import BrokenBody, DecodedTooLarge, UnknownEncoding, decode_body, decoder_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1024 * 1024
PAGE = b"<html>" + b"".join(b"<p>%d.99</p>" % n for n in range(20_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, mtime=0),
    "deflate": zlib.compress,
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": zstd.compress,
}
every_encoding = pytest.mark.parametrize("encoding", PACKERS)


@every_encoding
@pytest.mark.parametrize("step", [1, 7, 4096, 10 * MIB])
def test_a_body_is_unpacked_however_it_arrives(encoding: str, step: int) -> None:
    packed = PACKERS[encoding](PAGE)
    decoder = decoder_of(encoding, 10 * MIB)
    for start in range(0, len(packed), step):
        decoder.feed(packed[start : start + step])
    assert decoder.finish() == PAGE


@every_encoding
def test_a_cut_body_is_told(encoding: str) -> None:
    packed = PACKERS[encoding](PAGE)
    for end in (1, len(packed) // 2, len(packed) - 1):
        with pytest.raises(BrokenBody):
            decode_body(packed[:end], encoding, 10 * MIB)


@every_encoding
def test_a_body_of_another_kind_is_told(encoding: str) -> None:
    with pytest.raises(BrokenBody):
        decode_body(b"<html>not packed at all</html>", encoding, 10 * MIB)


@every_encoding
@pytest.mark.parametrize("size", [2 * MIB, 200 * MIB], ids=["past the ratio", "past the limit"])
def test_a_bomb_is_refused(encoding: str, size: int) -> None:
    packed = PACKERS[encoding](bytes(size))
    with pytest.raises(DecodedTooLarge):
        decode_body(packed, encoding, 10 * MIB)


@every_encoding
def test_a_bomb_is_refused_before_it_has_arrived(encoding: str) -> None:
    packed = PACKERS[encoding](bytes(200 * MIB))
    decoder = decoder_of(encoding, 10 * MIB)
    with pytest.raises(DecodedTooLarge):
        decoder.feed(packed[: len(packed) * 4 // 5])


@every_encoding
def test_a_small_page_may_pack_well(encoding: str) -> None:
    assert decode_body(PACKERS[encoding](bytes(MIB)), encoding, 10 * MIB) == bytes(MIB)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_members_follow_each_other_and_what_is_no_member_is_left(encoding: str) -> None:
    pack = PACKERS[encoding]
    assert decode_body(pack(b"one ") + pack(b"two") + b"tail", encoding, MIB) == b"one two"


def test_a_zstd_window_that_grabs_memory_is_refused() -> None:
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27}
    packer = zstd.ZstdCompressor(options=options)
    packed = packer.compress(PAGE) + packer.flush()
    with pytest.raises(BrokenBody):
        decode_body(packed, "zstd", 10 * MIB)


def test_what_was_not_offered_is_not_unpacked() -> None:
    with pytest.raises(UnknownEncoding):
        decode_body(b"x", "gzip, br", MIB)


@pytest.mark.parametrize("encoding", ["", "identity", *PACKERS])
def test_no_body_is_no_body(encoding: str) -> None:
    assert decoder_of(encoding, MIB).finish() == b""
