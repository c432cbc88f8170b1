"""A receiver in a process of its own that does nothing but take, count and thank. Told the
secret of an endpoint, it also checks each signature and keeps what it was told."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
import urllib.request
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self, cast

import uvloop

from notifications.signing import BadSignature, verify

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks"
# Deliveries to this path are taken and never answered.
DEAD = "/dead"


@dataclass
class Book:
    """What arrived: when and as which delivery, and what it said where its signature was right."""

    secret: str
    receipts: list[tuple[float, str]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    forged: int = 0

    def note(self, head: bytes, body: bytes) -> None:
        self.receipts.append((time.time(), _header(head, b"x-obsrv-delivery")))
        if not self.secret:
            return
        try:
            verify(
                body, _header(head, b"x-obsrv-signature"), secrets=[self.secret], now=time.time()
            )
        except BadSignature:
            self.forged += 1
        else:
            self.events.append(json.loads(body))

    def taken(self) -> bytes:
        told = {"receipts": self.receipts, "events": self.events, "forged": self.forged}
        body = json.dumps(told).encode()
        self.receipts, self.events, self.forged = [], [], 0
        return body


class Taker(asyncio.Protocol):
    """Just enough HTTP: requests one after another on a connection, bodies with a length."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end]
            size = int(_header(head, b"content-length") or 0)
            if len(self.waiting) < end + 4 + size:
                return
            body = self.waiting[end + 4 : end + 4 + size]
            self.waiting = self.waiting[end + 4 + size :]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /book"):
            told = self.book.taken()
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told) + told
            )
        elif not head.startswith(b"POST /dead"):
            self.book.note(head, body)
            self.transport.write(OK)


def _header(head: bytes, wanted: bytes) -> str:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == wanted:
            return value.strip().decode("latin-1")
    return ""


def _serve(pipe: Connection, secret: str) -> None:
    async def run() -> None:
        book = Book(secret)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Taker(book), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


class BulkReceiver:
    def __init__(self, secret: str = "") -> None:
        self.secret = secret

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.secret), daemon=True)
        self._process.start()
        self.url = f"http://127.0.0.1:{ours.recv()}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.join()

    def times(self) -> list[float]:
        """When each delivery arrived, since this was asked before."""
        return [at for at, _delivery in self.receipts()]

    def receipts(self) -> list[tuple[float, str]]:
        """When which delivery arrived, since this was asked before."""
        found: list[tuple[float, str]] = self.take()["receipts"]
        return found

    def take(self) -> dict[str, Any]:
        """All that arrived since this was asked before; ``forged`` had no right signature."""
        with urllib.request.urlopen(f"{self.url}/book") as answer:
            found: dict[str, Any] = json.load(answer)
        return found
