"""Real proxies on loopback, each in a thread of its own, that can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import ssl
import threading
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Self

from common.proxying import Protocol, ProxyAddress
from obsrv.demo.loopback import let_go

Script = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]] | None
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LISTEN = "127.0.0.7"


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Answer nothing."""


async def keep_waiting(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


class LoopbackProxy:
    """``requests`` is what it was asked for; ``script`` replaces its next answers."""

    protocol: Protocol

    def __init__(
        self, *, login: tuple[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.login = login
        self.tls = tls
        self.script: Script = None
        self.connections = 0
        self.requests: list[str] = []
        # Names that the proxy itself knows; it dials loopback only.
        self.hosts: dict[str, str] = {}
        self.port = 0
        # Loops know their tasks only weakly, and these wait for nobody but each other.
        self._open: set[asyncio.Task[None] | None] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(5)

    def address(self, username: str = "", password: str = "") -> ProxyAddress:
        return ProxyAddress(self.protocol, LISTEN, self.port, username, password)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._handle, LISTEN, 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        await let_go()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self.talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()
        self._open.discard(asyncio.current_task())

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def misbehave(self, writer: asyncio.StreamWriter) -> bool:
        if self.script is None:
            return False
        if isinstance(self.script, bytes):
            writer.write(self.script)
            await writer.drain()
        else:
            await self.script(writer)
        return True

    async def dial(self, host: str, port: int) -> Streams:
        address = ip_address(self.hosts.get(host, host))
        assert address.is_loopback, "these proxies never leave the machine"
        return await asyncio.open_connection(str(address), port)


class HttpProxy(LoopbackProxy):
    """CONNECT, and absolute-form for plain HTTP."""

    @property
    def protocol(self) -> Protocol:  # type: ignore[override]
        return "https" if self.tls else "http"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            if not self._may_enter(head):
                writer.write(b"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n")
                continue
            self.requests.append(f"{method} {target}")
            if await self.misbehave(writer):
                return None
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                other = await self.dial(host.strip("[]"), int(port))
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                return await join((reader, writer), other)
            await self._forward(head, method, target, writer)
        return None

    def _may_enter(self, head: bytes) -> bool:
        if self.login is None:
            return True
        wanted = base64.b64encode(":".join(self.login).encode())
        return b"Proxy-Authorization: Basic " + wanted + b"\r\n" in head

    async def _forward(
        self, head: bytes, method: str, target: str, writer: asyncio.StreamWriter
    ) -> None:
        authority, _, path = target.removeprefix("http://").partition("/")
        host, _, port = authority.partition(":")
        other_reader, other_writer = await self.dial(host, int(port or 80))
        lines = head.split(b"\r\n")[1:-2]
        kept = [line for line in lines if not line.lower().startswith((b"proxy-", b"connection"))]
        first = f"{method} /{path} HTTP/1.1".encode()
        other_writer.write(b"\r\n".join([first, *kept, b"", b""]))
        answer = await other_reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", answer)
        writer.write(answer + await other_reader.readexactly(int(length[1]) if length else 0))
        other_writer.close()


class Socks5Proxy(LoopbackProxy):
    protocol: Protocol = "socks5"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await self.misbehave(writer) or not await self._let_in(reader, writer):
            return
        _, _, _, kind = await reader.readexactly(4)
        host = str(ip_address(await reader.readexactly({1: 4, 4: 16}[kind])))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.requests.append(f"{host}:{port}")
        try:
            other = await self.dial(host, port)
        except OSError:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            return
        # Answered with a name, which clients must read to its end.
        writer.write(b"\x05\x00\x00\x03\x04exit\x00\x50")
        await join((reader, writer), other)

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        method = 2 if self.login else 0
        if method not in offered:
            writer.write(b"\x05\xff")
            return False
        writer.write(bytes([5, method]))
        return not self.login or await self._check_login(reader, writer)

    async def _check_login(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        _, length = await reader.readexactly(2)
        name = await reader.readexactly(length)
        password = await reader.readexactly((await reader.readexactly(1))[0])
        right = (name.decode(), password.decode()) == self.login
        writer.write(b"\x01\x00" if right else b"\x01\x01")
        return right


async def join(one: Streams, other: Streams) -> None:
    try:
        await asyncio.gather(pump(one[0], other[1]), pump(other[0], one[1]))
    finally:
        other[1].close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
