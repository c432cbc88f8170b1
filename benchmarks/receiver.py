"""A receiver in a process of its own that does nothing but take, count and thank."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
import urllib.request
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self, cast

import uvloop

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks"
# Deliveries to this path are taken and never answered.
DEAD = "/dead"


class Taker(asyncio.Protocol):
    """Just enough HTTP: requests one after another on a connection, bodies with a length."""

    def __init__(self, receipts: list[tuple[float, str]]) -> None:
        self.receipts = receipts
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end]
            size = int(_header(head.lower(), b"content-length:") or 0)
            if len(self.waiting) < end + 4 + size:
                return
            self.waiting = self.waiting[end + 4 + size :]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"GET /receipts"):
            body = json.dumps(self.receipts).encode()
            self.receipts.clear()
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
        elif not head.startswith(b"POST /dead"):
            delivery = _header(head.lower(), b"x-obsrv-delivery:")
            self.receipts.append((time.time(), delivery.decode()))
            self.transport.write(OK)


def _header(head: bytes, name: bytes) -> bytes:
    return head.partition(name)[2].split(b"\r\n", 1)[0].strip()


def _serve(pipe: Connection) -> None:
    async def run() -> None:
        receipts: list[tuple[float, str]] = []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Taker(receipts), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


class BulkReceiver:
    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
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
        with urllib.request.urlopen(f"{self.url}/receipts") as answer:
            found: list[tuple[float, str]] = json.load(answer)
        return found
