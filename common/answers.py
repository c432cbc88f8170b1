"""What came back: read within limits, or told as a failure without the address dialled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import aiohttp
from aiohttp.client_exceptions import ClientConnectorDNSError, ClientSSLError
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict

from common.encodings import BrokenBody, DecodedTooLarge, UnknownEncoding, decoder_of
from common.proxying import Line
from common.wire import MAX_HEADER_BYTES, Answer, BadAnswer

Category = Literal["network", "timeout", "too_large", "http", "blocked", "validation"]


class FetchFailed(Exception):
    """No answer was got; ``transient`` says whether another try may help.

    ``via_proxy``: the proxy failed, and nothing is known of the server. ``status``: what the
    server answered with, where that came.
    """

    status: int | None = None

    def __init__(
        self, category: Category, message: str, *, transient: bool, via_proxy: bool = False
    ) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.transient = transient
        self.via_proxy = via_proxy


@dataclass(frozen=True, slots=True)
class Response:
    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_ms: int
    wire_bytes: int
    # The body as it came, where that was gzip: fit to be stored.
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int
    decoded_bytes: int
    accept_types: tuple[str, ...] | None
    # Only so much is read, as it comes, and the rest left where it is.
    first_bytes: int | None = None
    # What is larger is cut there and read so far, instead of refused.
    cuts: bool = False


async def read(
    answer: Answer | aiohttp.ClientResponse, url: str, limits: Limits, started: float
) -> Response:
    try:
        return await _read(answer, url, limits, started)
    except FetchFailed as failed:
        failed.status = answer.status
        raise


async def _read(
    answer: Answer | aiohttp.ClientResponse, url: str, limits: Limits, started: float
) -> Response:
    _check_headers(answer, limits)
    if limits.first_bytes is not None:
        body, packed = await _read_start(answer, limits.first_bytes), b""
        size = len(body)
    else:
        body, size, packed = await _read_body(answer, limits)
    elapsed_ms = round((perf_counter() - started) * 1000)
    headers = _readable_headers(answer)
    return Response(url, answer.status, headers, body, elapsed_ms, size, packed)


def _readable_headers(answer: Answer | aiohttp.ClientResponse) -> Mapping[str, str]:
    if all(text.isascii() for _, text in answer.raw_headers):
        return answer.headers
    # aiohttp keeps odd bytes as lone surrogates, which no database or JSON takes.
    pairs = ((name.decode(), text.decode(errors="replace")) for name, text in answer.raw_headers)
    return CIMultiDict(pairs)


def _check_headers(answer: Answer | aiohttp.ClientResponse, limits: Limits) -> None:
    if sum(len(name) + len(text) for name, text in answer.raw_headers) > MAX_HEADER_BYTES:
        raise FetchFailed("too_large", "The headers of the answer are too large.", transient=False)
    whole = limits.first_bytes is None and not limits.cuts and answer.method != "HEAD"
    if whole and (answer.content_length or 0) > limits.body_bytes:
        raise _too_large()
    if limits.accept_types and answer.status < 300:
        declared = (
            _readable_headers(answer).get("Content-Type", "").partition(";")[0].strip().lower()
        )
        if declared and not declared.startswith(limits.accept_types):
            message = f"The answer is of the type {declared[:100]}, which is not read here."
            raise FetchFailed("validation", message, transient=False)


async def _read_start(answer: Answer | aiohttp.ClientResponse, limit: int) -> bytes:
    start = bytearray()
    while len(start) < limit and (chunk := await answer.content.readany()):
        start += chunk
    return bytes(start[:limit])


async def _read_body(
    answer: Answer | aiohttp.ClientResponse, limits: Limits
) -> tuple[bytes, int, bytes]:
    """The unpacked body, its size on the wire and, of gzip, what came; unpacked as it comes,
    so that a bomb ends at its limit and not in memory."""
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    came: list[bytes] = []
    size = 0
    try:
        decoder = decoder_of(encoding, limits.decoded_bytes)
        try:
            while chunk := await answer.content.readany():
                size += len(chunk)
                decoder.feed(chunk)
                if size > limits.body_bytes:
                    raise DecodedTooLarge
                if encoding == "gzip":
                    came.append(chunk)
        except DecodedTooLarge:
            if not limits.cuts:
                raise _too_large() from None
            return decoder.so_far()[: limits.decoded_bytes], size, b""
        return decoder.finish(), size, b"".join(came)
    except UnknownEncoding:
        message = "The answer is packed in a way that was not offered."
        raise FetchFailed("validation", message, transient=False) from None
    except BrokenBody:
        message = "The packed answer is damaged or incomplete."
        raise FetchFailed("network", message, transient=True) from None


def _too_large() -> FetchFailed:
    return FetchFailed("too_large", "The answer is too large.", transient=False)


def _is_header_overflow(error: BaseException | None) -> bool:
    # aiohttp wraps its parser's error twice.
    while error is not None and not isinstance(error, LineTooLong):
        error = error.__cause__
    return error is not None


def no_such_name() -> FetchFailed:
    return FetchFailed("network", "The host name could not be resolved.", transient=True)


def proxy_failure() -> FetchFailed:
    message = "The proxy cannot be reached, or refused the connection."
    return FetchFailed("network", message, transient=True, via_proxy=True)


def failure_on(line: Line, error: Exception) -> FetchFailed:
    from_shop = line.reached or (line.forwards and _is_header_overflow(error))
    return failure_of(error) if from_shop else proxy_failure()


def failure_of(error: Exception) -> FetchFailed:
    """Say what went wrong without the address that was dialled."""
    if isinstance(error, TimeoutError):
        return FetchFailed("timeout", "The server did not answer in time.", transient=True)
    if isinstance(error, ClientConnectorDNSError):
        return no_such_name()
    if isinstance(error, ClientSSLError):
        return FetchFailed("network", "No secure connection could be made.", transient=True)
    if _is_header_overflow(error):
        message = "The headers of the answer are too large."
        return FetchFailed("too_large", message, transient=False)
    if isinstance(error, aiohttp.ClientResponseError | BadAnswer):
        return FetchFailed("network", "The answer is not valid HTTP.", transient=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        return FetchFailed("network", "The answer ended too early.", transient=True)
    return FetchFailed("network", "The connection failed or was cut.", transient=True)
