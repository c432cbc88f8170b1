"""The way through a proxy: its address, the SOCKS5 handshake, and whose fault a failure is."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from common.errors import UrlBlocked
from common.guard import PinningResolver

Protocol = Literal["http", "https", "socks5"]
AddressInfo = tuple[Any, ...]
Dial = Callable[[AddressInfo], socket.socket]

CONNECT_SECONDS = 5
# The proxy connects to the shop meanwhile.
HANDSHAKE_SECONDS = 10

_SOCKS_VERSION = 5
_NO_LOGIN, _LOGIN = 0, 2
_LOGIN_VERSION = 1
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_MAX_LOGIN_BYTES = 255


class ProxyFailed(OSError):
    """The proxy cannot be used; never says its address or credentials."""


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    protocol: Protocol
    host: str
    port: int
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def url(self) -> URL:
        return URL.build(scheme=self.protocol, host=self.host, port=self.port)

    @property
    def login(self) -> dict[str, str]:
        """The header that HTTP proxies ask for."""
        if not self.username and not self.password:
            return {}
        pair = f"{self.username}:{self.password}".encode()
        return {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode()}"}


class Line:
    """One request's way through a proxy.

    Until the shop is ``reached``, every failure is the proxy's: in a tunnel until the
    connection to the shop stands, and where the proxy forwards plain HTTP until it answers.
    """

    def __init__(self, proxy: ProxyAddress, session: aiohttp.ClientSession) -> None:
        self.proxy = proxy
        self.session = session
        self.forwards = False
        self.reached = False

    def options(self, url: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
        """How aiohttp is asked for the next hop."""
        self.reached = False
        self.forwards = self.proxy.protocol != "socks5" and url.startswith("http:")
        if self.proxy.protocol == "socks5":
            return {"headers": headers, "trace_request_ctx": self}
        login = self.proxy.login
        return {
            "headers": {**(headers or {}), **login} if self.forwards else headers,
            "proxy": self.proxy.url,
            "proxy_headers": None if self.forwards else login,
            "trace_request_ctx": self,
        }

    def answered(self, status: int) -> None:
        if self.forwards and status == 407:
            raise ProxyFailed("the proxy refused the login")
        self.reached = True


def tracing() -> aiohttp.TraceConfig:
    """Tells each ``Line`` of its connection."""
    config = aiohttp.TraceConfig()
    config.on_connection_create_start.append(_connecting)
    config.on_connection_create_end.append(_connected)
    config.on_connection_reuseconn.append(_connected)
    return config


async def _connecting(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.reached = False


async def _connected(_session: object, context: SimpleNamespace, _params: object) -> None:
    line: Line = context.trace_request_ctx
    line.reached = not line.forwards


class ProxyResolver(AbstractResolver):
    """The guard for proxies' names. A refusal is the proxy's failure and not the page's."""

    def __init__(self, guard: PinningResolver) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            return await self._guard.resolve(host, port, family)
        except UrlBlocked:
            raise ProxyFailed("the address of the proxy is refused") from None

    async def close(self) -> None:
        await self._guard.close()


class Socks5Connector(aiohttp.BaseConnector):
    """Connections through one SOCKS5 proxy, which is told the very address we checked."""

    def __init__(
        self,
        proxy: ProxyAddress,
        *,
        proxies: AbstractResolver,
        targets: AbstractResolver,
        dial: Dial,
        tls: ssl.SSLContext | None,
        limit: int,
        keepalive_timeout: float,
    ) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout)
        self._proxy = proxy
        self._proxies = proxies
        self._targets = targets
        self._dial = dial
        self._tls = tls

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        host, port = req.url.host, req.url.port
        target = _preferred(await self._targets.resolve(host, port))
        connected = await self._connect()
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await _shake_hands(connected, self._proxy, target, port)
                secure = (self._tls or _verifying()) if req.is_ssl() else None
                _, protocol = await self._loop.create_connection(
                    self._factory,
                    sock=connected,
                    ssl=secure,
                    server_hostname=host if secure else None,
                )
        except BaseException:
            connected.close()
            raise
        return protocol

    async def _connect(self) -> socket.socket:
        found = await self._proxies.resolve(self._proxy.host, self._proxy.port)
        async with asyncio.timeout(CONNECT_SECONDS):
            for answer in found:
                try:
                    return await self._connect_to(answer)
                except OSError:
                    continue
        raise ProxyFailed("the proxy cannot be reached")

    async def _connect_to(self, answer: ResolveResult) -> socket.socket:
        address = (answer["host"], answer["port"])
        kind = (answer["family"], socket.SOCK_STREAM, answer["proto"])
        connecting = self._dial((*kind, "", address))
        try:
            connecting.settimeout(0)
            await asyncio.get_running_loop().sock_connect(connecting, address)
        except BaseException:
            connecting.close()
            raise
        return connecting


@lru_cache(maxsize=1)
def _verifying() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _preferred(answers: Sequence[ResolveResult]) -> str:
    # Few proxies have a way to IPv6.
    return min(answers, key=lambda answer: answer["family"] != socket.AF_INET)["host"]


async def _shake_hands(
    connected: socket.socket, proxy: ProxyAddress, target: str, port: int
) -> None:
    """RFC 1928, with user name and password as in RFC 1929."""
    loop = asyncio.get_running_loop()
    with_login = bool(proxy.username or proxy.password)
    methods = bytes([_NO_LOGIN, _LOGIN] if with_login else [_NO_LOGIN])
    await loop.sock_sendall(connected, bytes([_SOCKS_VERSION, len(methods)]) + methods)
    version, method = await _receive(connected, 2)
    if version != _SOCKS_VERSION or method not in methods:
        raise ProxyFailed("the proxy speaks another language or wants another login")
    if method == _LOGIN:
        await _log_in(connected, proxy)
    address = ip_address(target)
    kind = _IPV4 if address.version == 4 else _IPV6
    request = bytes([_SOCKS_VERSION, _CONNECT, 0, kind]) + address.packed + port.to_bytes(2, "big")
    await loop.sock_sendall(connected, request)
    await _read_reply(connected)


async def _log_in(connected: socket.socket, proxy: ProxyAddress) -> None:
    name, password = proxy.username.encode(), proxy.password.encode()
    if max(len(name), len(password)) > _MAX_LOGIN_BYTES:
        raise ProxyFailed("the login is too long for SOCKS5")
    message = bytes([_LOGIN_VERSION, len(name)]) + name + bytes([len(password)]) + password
    await asyncio.get_running_loop().sock_sendall(connected, message)
    _, status = await _receive(connected, 2)
    if status != 0:
        raise ProxyFailed("the proxy refused the login")


async def _read_reply(connected: socket.socket) -> None:
    version, status, _, kind = await _receive(connected, 4)
    if version != _SOCKS_VERSION or status != 0:
        raise ProxyFailed("the proxy did not connect to the shop")
    if kind == _NAME:
        (length,) = await _receive(connected, 1)
    else:
        length = {_IPV4: 4, _IPV6: 16}.get(kind, 0)
    await _receive(connected, length + 2)


async def _receive(connected: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    received = b""
    while len(received) < size:
        chunk = await loop.sock_recv(connected, size - len(received))
        if not chunk:
            raise ProxyFailed("the proxy hung up")
        received += chunk
    return received
