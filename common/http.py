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
from typing import Self
from urllib.parse import quote, urljoin

import aiohttp
from django.conf import settings
from yarl import URL

from common.answers import (
    FetchFailed,
    Limits,
    Response,
    failure_of,
    failure_on,
    no_such_name,
    proxy_failure,
    read,
)
from common.encodings import ACCEPTED_ENCODINGS
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
from common.wire import MAX_HEADER_BYTES, Answer, Wire

__all__ = [
    "Egress",
    "FetchFailed",
    "Policy",
    "ProxyAddress",
    "Response",
    "check_target",
]

SocketFactory = Callable[[AddressInfo], socket.socket]

MIB = 1024 * 1024
KEEP_ALIVE_SECONDS = 30
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Not shown to another origin than the one they were meant for.
PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


_limits = lru_cache(maxsize=256)(Limits)


@dataclass(slots=True)
class Errand:
    """What is asked for and where, as redirects change it."""

    method: str
    url: str
    headers: Mapping[str, str] | None
    body: bytes | None
    max_redirects: int
    may_follow: Callable[[str], bool] | None
    redirects: int = 0

    @property
    def follows(self) -> bool:
        return self.max_redirects > 0

    def turn(self, status: int, target: str) -> None:
        """Go to the target of a redirect, if it may be followed."""
        self.redirects += 1
        if self.redirects > self.max_redirects:
            raise FetchFailed("http", "The page redirects too many times.", transient=False)
        if self.may_follow is not None and not self.may_follow(target):
            raise FetchFailed("http", "The page redirects to another site.", transient=False)
        if status == 303 or (status in {301, 302} and self.method == "POST"):
            self.method, self.body = ("HEAD" if self.method == "HEAD" else "GET"), None
        if self.headers and origin_of(target) != origin_of(self.url):
            in_the_open = self.url.startswith("https:") and target.startswith("http:")
            self.headers = None if in_the_open else _without_private(self.headers)
        self.url = target


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
        # Its own, not the function's: looking up a policy costs more than the check.
        self._check_origin = lru_cache(maxsize=8192)(self._check_literally)

    async def __aenter__(self) -> Self:
        self._proxy_policy = self._policy.for_proxies()
        self._resolver = PinningResolver(self._policy, self._resolve)
        self._proxy_resolver = ProxyResolver(PinningResolver(self._proxy_policy, self._resolve))
        self._by_proxy: dict[ProxyAddress, aiohttp.ClientSession] = {}
        self._direct = self._connector(self._resolver, self._dial)
        self._wire = Wire(
            self._direct, user_agent=self._user_agent, connect_seconds=CONNECT_SECONDS
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for session in self._by_proxy.values():
            await session.close()
        await self._direct.close()
        await self._resolver.close()
        await self._proxy_resolver.close()

    def _open_session(
        self, connector: aiohttp.BaseConnector, trace: aiohttp.TraceConfig
    ) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept-Encoding": ACCEPTED_ENCODINGS},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            trust_env=False,
            max_field_size=MAX_HEADER_BYTES,
            trace_configs=[trace],
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
            raise proxy_failure() from None
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
        first_bytes: int | None = None,
        cuts: bool = False,
        accept_types: tuple[str, ...] | None = None,
        may_follow: Callable[[str], bool] | None = None,
        proxy: ProxyAddress | None = None,
    ) -> Response:
        """Return the answer, whatever its status; with no redirects allowed, also a 3xx.

        ``may_follow`` is asked about every target of a redirect; ``first_bytes`` reads so much of
        the body, unpacked or not, and leaves the rest; ``cuts`` takes the start of a body that is
        over its limits. Raises ``UrlInvalid``, ``UrlBlocked`` or ``FetchFailed``.
        """
        limits = _limits(max_body_bytes, max_decoded_bytes, accept_types, first_bytes, cuts)
        line = self._line(proxy) if proxy else None
        errand = Errand(method, self._clear(url), headers, body, max_redirects, may_follow)
        try:
            async with asyncio.timeout(timeout_seconds):
                started = perf_counter()
                while True:
                    answer = await self._ask(errand, limits, started, line)
                    if answer is not None:
                        return answer
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # Without its cause: that names the address which was dialled.
            raise (failure_on(line, error) if line else failure_of(error)) from None

    async def _ask(
        self, errand: Errand, limits: Limits, started: float, line: Line | None
    ) -> Response | None:
        """One hop: the answer, or None where the errand goes on to another address."""
        method, url, headers, body = errand.method, errand.url, errand.headers, errand.body
        if line is None:
            with await self._wire.send(method, url, headers, body) as reply:
                return await self._take(reply, errand, limits, started)
        await self._check_name(url)
        options = line.options(url, headers)
        async with line.session.request(
            method, URL(url, encoded=True), data=body, allow_redirects=False, **options
        ) as answer:
            line.answered(answer.status)
            return await self._take(answer, errand, limits, started)

    async def _take(
        self,
        answer: Answer | aiohttp.ClientResponse,
        errand: Errand,
        limits: Limits,
        started: float,
    ) -> Response | None:
        location = answer.headers.get("Location") if errand.follows else None
        if answer.status not in REDIRECTS or not location:
            return await read(answer, errand.url, limits, started)
        errand.turn(answer.status, self._next_hop(errand.url, location))
        return None

    async def _check_name(self, url: str) -> None:
        """What a proxy would resolve is resolved and checked here first."""
        try:
            await self._resolver.resolve(*host_and_port(url))
        except OSError:
            # Also a lookup that took too long.
            raise no_such_name() from None

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
        self._check_origin(origin_of(target))
        return target

    def _check_literally(self, origin: str) -> None:
        # aiohttp asks no resolver about literal addresses, so they are checked before it.
        self._policy.check_literally(*host_and_port(origin))

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


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _open_socket(address_info: AddressInfo) -> socket.socket:
    family, kind, protocol = address_info[:3]
    return socket.socket(family, kind, protocol)


def _without_private(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in headers.items() if name.lower() not in PRIVATE_HEADERS}
