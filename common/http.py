"""The one guarded door to the network.

Every request for a URL that came from data goes through ``Egress``: the URL is parsed once,
its host is resolved once, every answer must be public, and the connection goes to the very
address that was checked. Registration doors ask ``check_target`` the same question early.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from time import perf_counter
from typing import Literal, Self
from urllib.parse import quote, urljoin

import aiohttp
from aiohttp.client_exceptions import ClientConnectorDNSError, ClientSSLError
from aiohttp.http_exceptions import LineTooLong
from django.conf import settings
from multidict import CIMultiDict
from yarl import URL

from common.encodings import (
    ACCEPTED_ENCODINGS,
    BrokenBody,
    DecodedTooLarge,
    UnknownEncoding,
    decode_body,
)
from common.errors import Refused, UrlBlocked, UrlInvalid
from common.guard import PinningResolver, Policy, Resolve, check_target, resolve_name
from common.proxying import (
    CONNECT_SECONDS,
    AddressInfo,
    Line,
    ProxyAddress,
    ProxyFailed,
    ProxyResolver,
    Socks5Connector,
    tracing,
)
from common.urls import host_and_port, origin_of

__all__ = [
    "Category",
    "Egress",
    "FetchFailed",
    "Policy",
    "ProxyAddress",
    "Response",
    "check_target",
]

Category = Literal["network", "timeout", "too_large", "http", "blocked", "validation"]
SocketFactory = Callable[[AddressInfo], socket.socket]

MIB = 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
KEEP_ALIVE_SECONDS = 30
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Not shown to another origin than the one they were meant for.
PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class FetchFailed(Exception):
    """No answer was got; ``transient`` says whether another try may help.

    ``via_proxy``: the proxy failed, and nothing is known of the server.
    """

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


@dataclass(frozen=True, slots=True)
class _Limits:
    body_bytes: int
    decoded_bytes: int
    accept_types: tuple[str, ...] | None


class Egress:
    """Sends requests; one per event loop, used as an async context manager."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        resolve: Resolve | None = None,
        socket_factory: SocketFactory | None = None,
        user_agent: str | None = None,
        connections: int = 512,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy or Policy.from_settings()
        self._resolve = resolve or resolve_name
        self._open_socket = socket_factory or _open_socket
        self._user_agent = user_agent or settings.CRAWL_USER_AGENT
        self._connections = connections
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._proxy_policy = self._policy.for_proxies()
        self._resolver = PinningResolver(self._policy, self._resolve)
        self._proxy_resolver = ProxyResolver(PinningResolver(self._proxy_policy, self._resolve))
        self._by_proxy: dict[ProxyAddress, aiohttp.ClientSession] = {}
        self._session = self._open_session(self._connector(self._resolver, self._dial))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for session in (self._session, *self._by_proxy.values()):
            await session.close()
        await self._resolver.close()
        await self._proxy_resolver.close()

    def _open_session(
        self, connector: aiohttp.BaseConnector, *traces: aiohttp.TraceConfig
    ) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept-Encoding": ACCEPTED_ENCODINGS},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            trust_env=False,
            max_field_size=MAX_HEADER_BYTES,
            trace_configs=list(traces),
        )

    def _connector(
        self, resolver: PinningResolver | ProxyResolver, dial: SocketFactory
    ) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            resolver=resolver,
            use_dns_cache=False,
            limit=self._connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            socket_factory=dial,
            ssl=self._tls or True,
        )

    def _line(self, proxy: ProxyAddress) -> Line:
        try:
            self._proxy_policy.parse(f"http://{_in_url(proxy.host)}:{proxy.port}/")
        except Refused:
            raise _proxy_failure() from None
        session = self._by_proxy.get(proxy)
        if session is None:
            connector = self._proxy_connector(proxy)
            session = self._by_proxy[proxy] = self._open_session(connector, tracing())
        return Line(proxy, session)

    def _proxy_connector(self, proxy: ProxyAddress) -> aiohttp.BaseConnector:
        if proxy.protocol != "socks5":
            return self._connector(self._proxy_resolver, self._dial_proxy)
        return Socks5Connector(
            proxy,
            proxies=self._proxy_resolver,
            targets=self._resolver,
            dial=self._dial_proxy,
            tls=self._tls,
            limit=self._connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        max_redirects: int = 5,
        timeout_seconds: float = 30,
        max_body_bytes: int = 5 * MIB,
        max_decoded_bytes: int = 10 * MIB,
        accept_types: tuple[str, ...] | None = None,
        proxy: ProxyAddress | None = None,
    ) -> Response:
        """Return the answer, whatever its status; with no redirects allowed, also a 3xx.

        Raises ``UrlInvalid``, ``UrlBlocked`` or ``FetchFailed``.
        """
        limits = _Limits(max_body_bytes, max_decoded_bytes, accept_types)
        target = self._clear(url)
        line = self._line(proxy) if proxy else None
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._follow(
                    method, target, headers, body, max_redirects, limits, line
                )
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # Without its cause: that names the address which was dialled.
            raise (_failure_on(line, error) if line else _failure(error)) from None

    async def _follow(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        body: bytes | None,
        max_redirects: int,
        limits: _Limits,
        line: Line | None,
    ) -> Response:
        started = perf_counter()
        session = line.session if line else self._session
        for _ in range(max_redirects + 1):
            if line:
                await self._check_name(url)
            options = line.options(url, headers) if line else {"headers": headers}
            async with session.request(
                method, URL(url, encoded=True), data=body, allow_redirects=False, **options
            ) as answer:
                if line:
                    line.answered(answer.status)
                location = answer.headers.get("Location") if max_redirects else None
                if answer.status not in REDIRECTS or not location:
                    return await _read(answer, url, limits, started)
            target = self._next_hop(url, location)
            if answer.status == 303 or (answer.status in {301, 302} and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
            if headers and origin_of(target) != origin_of(url):
                headers = _without_private(headers)
            url = target
        raise FetchFailed("http", "The page redirects too many times.", transient=False)

    async def _check_name(self, url: str) -> None:
        """What a proxy would resolve is resolved and checked here first."""
        try:
            await self._resolver.resolve(*host_and_port(url))
        except OSError:
            # Also a lookup that took too long.
            raise _no_such_name() from None

    def _next_hop(self, url: str, location: str) -> str:
        # Servers send raw UTF-8 or Latin-1 here; aiohttp keeps odd bytes as surrogates.
        escaped = quote(location, safe=_PRINTABLE, errors="surrogateescape")
        try:
            return self._clear(urljoin(url, escaped))
        except (UrlInvalid, ValueError):
            message = "The page redirects to an address that is malformed."
            raise FetchFailed("validation", message, transient=False) from None

    def _clear(self, url: str) -> str:
        target = self._policy.parse(url)
        _check_origin(self._policy, origin_of(target))
        return target

    def _dial(self, address_info: AddressInfo) -> socket.socket:
        """Last look at the very address that is about to be dialled, whoever chose it."""
        host, port = address_info[4][:2]
        self._policy.check([ip_address(host)], port)
        return self._open_socket(address_info)

    def _dial_proxy(self, address_info: AddressInfo) -> socket.socket:
        host, port = address_info[4][:2]
        try:
            self._proxy_policy.check([ip_address(host)], port)
        except UrlBlocked:
            raise ProxyFailed("the address of the proxy is refused") from None
        return self._open_socket(address_info)


@lru_cache(maxsize=8192)
def _check_origin(policy: Policy, origin: str) -> None:
    # aiohttp asks no resolver about literal addresses, so they are checked before it.
    policy.check_literally(*host_and_port(origin))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _open_socket(address_info: AddressInfo) -> socket.socket:
    family, kind, protocol = address_info[:3]
    return socket.socket(family, kind, protocol)


def _without_private(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in headers.items() if name.lower() not in PRIVATE_HEADERS}


async def _read(
    answer: aiohttp.ClientResponse, url: str, limits: _Limits, started: float
) -> Response:
    _check_headers(answer, limits)
    raw = await _read_raw(answer.content, limits.body_bytes)
    body = _decode(raw, answer.headers.get("Content-Encoding", ""), limits.decoded_bytes)
    elapsed_ms = round((perf_counter() - started) * 1000)
    return Response(url, answer.status, _readable_headers(answer), body, elapsed_ms, len(raw))


def _readable_headers(answer: aiohttp.ClientResponse) -> Mapping[str, str]:
    if all(text.isascii() for _, text in answer.raw_headers):
        return answer.headers
    # aiohttp keeps odd bytes as lone surrogates, which no database or JSON takes.
    pairs = ((name.decode(), text.decode(errors="replace")) for name, text in answer.raw_headers)
    return CIMultiDict(pairs)


def _check_headers(answer: aiohttp.ClientResponse, limits: _Limits) -> None:
    if sum(len(name) + len(text) for name, text in answer.raw_headers) > MAX_HEADER_BYTES:
        raise FetchFailed("too_large", "The headers of the answer are too large.", transient=False)
    if answer.method != "HEAD" and (answer.content_length or 0) > limits.body_bytes:
        raise _too_large()
    if limits.accept_types and answer.status < 300:
        declared = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if declared and not declared.startswith(limits.accept_types):
            message = f"The answer is of the type {declared[:100]}, which is not read here."
            raise FetchFailed("validation", message, transient=False)


async def _read_raw(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := await content.readany():
        size += len(chunk)
        if size > max_bytes:
            raise _too_large()
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _decode(raw: bytes, encoding: str, max_bytes: int) -> bytes:
    try:
        return decode_body(raw, encoding, max_bytes)
    except DecodedTooLarge:
        raise _too_large() from None
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


def _no_such_name() -> FetchFailed:
    return FetchFailed("network", "The host name could not be resolved.", transient=True)


def _proxy_failure() -> FetchFailed:
    message = "The proxy cannot be reached, or refused the connection."
    return FetchFailed("network", message, transient=True, via_proxy=True)


def _failure_on(line: Line, error: Exception) -> FetchFailed:
    from_shop = line.reached or (line.forwards and _is_header_overflow(error))
    return _failure(error) if from_shop else _proxy_failure()


def _failure(error: Exception) -> FetchFailed:
    """Say what went wrong without the address that was dialled."""
    if isinstance(error, TimeoutError):
        return FetchFailed("timeout", "The server did not answer in time.", transient=True)
    if isinstance(error, ClientConnectorDNSError):
        return _no_such_name()
    if isinstance(error, ClientSSLError):
        return FetchFailed("network", "No secure connection could be made.", transient=True)
    if _is_header_overflow(error):
        message = "The headers of the answer are too large."
        return FetchFailed("too_large", message, transient=False)
    if isinstance(error, aiohttp.ClientResponseError):
        return FetchFailed("network", "The answer is not valid HTTP.", transient=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        return FetchFailed("network", "The answer ended too early.", transient=True)
    return FetchFailed("network", "The connection failed or was cut.", transient=True)
