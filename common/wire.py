"""One request over a kept connection, by aiohttp's connector and parser alone.

Its session adds what the door does by itself or never wants (cookies, redirects, logins,
traces), and takes twice as long as the rest of an unchanged page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDictProxy
from yarl import URL

from common.encodings import ACCEPTED_ENCODINGS

MAX_HEADER_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
# Asked again when a kept connection turns out to be closed: nobody has acted on the first.
REPEATABLE = frozenset({"GET", "HEAD"})
STALE = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)


class Answer:
    """Status and headers; the body is in ``content``. Use as a context manager."""

    __slots__ = ("_connection", "content", "headers", "method", "raw_headers", "status")

    def __init__(self, method: str, connection: Connection, message: Any, content: Any) -> None:
        self.method = method
        self.status: int = message.code
        self.headers: CIMultiDictProxy[str] = message.headers
        self.raw_headers: tuple[tuple[bytes, bytes], ...] = message.raw_headers
        self.content: aiohttp.StreamReader = content
        self._connection = connection

    @property
    def content_length(self) -> int | None:
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isascii() and text.isdecimal() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """A connection whose answer was not read to its end is closed, not kept."""
        if error is None:
            self._connection.release()
        else:
            self._connection.close()


class Wire:
    """Sends requests to checked origins over the connections of one connector."""

    def __init__(
        self, connector: aiohttp.BaseConnector, *, user_agent: str, connect_seconds: float
    ) -> None:
        self._connector = connector
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._defaults = {
            "user-agent": f"User-Agent: {user_agent}",
            "accept": "Accept: */*",
            "accept-encoding": f"Accept-Encoding: {ACCEPTED_ENCODINGS}",
        }
        self._used: WeakSet[ResponseHandler] = WeakSet()
        loop = asyncio.get_running_loop()
        # What the connector must know of a request is the same for all of an origin.
        self._toward = lru_cache(maxsize=8192)(lambda o: ClientRequest("GET", URL(o), loop=loop))

    async def send(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> Answer:
        """``url`` is parsed and checked, as ``Policy.parse`` gives it."""
        scheme, _, rest = url.partition("://")
        host, slash, target = rest.partition("/")
        start = f"{method} {slash}{target} HTTP/1.1\r\nHost: {host}"
        raw = self._packet(method, start, headers, body)
        toward = self._toward(f"{scheme}://{host}")
        connection, kept = await self._connection(toward)
        try:
            return await self._exchange(method, connection, raw)
        except STALE:
            if not kept or method not in REPEATABLE:
                raise
        connection, _kept = await self._connection(toward)
        return await self._exchange(method, connection, raw)

    async def _connection(self, toward: ClientRequest) -> tuple[Connection, bool]:
        """A connection on which nothing is left of what went before, and whether it was used."""
        while True:
            connection = await self._connector.connect(toward, traces=[], timeout=self._timeout)
            protocol = connection.protocol
            kept = protocol in self._used
            if protocol is not None and not (kept and protocol.should_close):
                self._used.add(protocol)
                return connection, kept
            connection.close()

    def _packet(
        self, method: str, start: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> bytes:
        lines = [start, *(f"{name}: {text}" for name, text in (headers or {}).items())]
        named = {name.lower() for name in headers or ()}
        lines += [line for name, line in self._defaults.items() if name not in named]
        if body is not None or method not in REPEATABLE:
            lines.append(f"Content-Length: {len(body or b'')}")
        head = "\r\n".join(lines)
        breaks = len(lines)
        if head.count("\n") != breaks or head.count("\r") != breaks or "\0" in head:
            raise ValueError("a header holds a line break")
        return f"{head}\r\n\r\n".encode() + (body or b"")

    async def _exchange(self, method: str, connection: Connection, raw: bytes) -> Answer:
        try:
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None or transport.is_closing():
                raise aiohttp.ServerDisconnectedError
            self._prepare(protocol, method)
            transport.write(raw)
            message, content = await self._heard(protocol)
        except BaseException:
            connection.close()
            raise
        return Answer(method, connection, message, content)

    def _prepare(self, protocol: ResponseHandler, method: str) -> None:
        protocol.set_response_params(
            skip_payload=method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )

    async def _heard(self, protocol: ResponseHandler) -> tuple[Any, Any]:
        while True:
            try:
                message, content = await protocol.read()
            except HttpProcessingError as error:
                raise BadAnswer from error
            # A word in between (100 Continue, 103 Early Hints) is no answer.
            if message.code >= 200 or message.code == 101:
                return message, content


class BadAnswer(aiohttp.ClientError):
    """What came is not valid HTTP; its cause says why."""
