"""The one guarded door to the network.

Every request for a URL that came from data goes through ``Egress``: the URL is parsed once,
its host is resolved once, every answer must be public, and the connection goes to the very
address that was checked. Registration doors ask ``check_target`` the same question early.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from time import monotonic, perf_counter
from typing import Any, Literal, Self
from urllib.parse import quote, urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_exceptions import ClientConnectorDNSError, ClientSSLError
from aiohttp.http_exceptions import LineTooLong
from django.conf import settings
from multidict import CIMultiDict
from yarl import URL

from common.addresses import Address, Network, is_public
from common.encodings import (
    ACCEPTED_ENCODINGS,
    BrokenBody,
    DecodedTooLarge,
    UnknownEncoding,
    decode_body,
)
from common.errors import UrlBlocked, UrlInvalid
from common.urls import BLOCKED_DETAIL, host_and_port, is_localhost, origin_of, parse_url

Category = Literal["network", "timeout", "too_large", "http", "blocked", "validation"]
# Gives the addresses of a host name as text; raises OSError when it has none.
Resolve = Callable[[str], Sequence[str]]
AddressInfo = tuple[Any, ...]
SocketFactory = Callable[[AddressInfo], socket.socket]

MIB = 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
CONNECT_SECONDS = 5
LOOKUP_SECONDS = 5
REGISTRATION_LOOKUP_SECONDS = 3
DNS_CACHE_SECONDS = 60
DNS_CACHE_NAMES = 10_000
DNS_THREADS = 16
KEEP_ALIVE_SECONDS = 30
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Not shown to another origin than the one they were meant for.
PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
LOOPBACK = IPv4Address("127.0.0.1")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class FetchFailed(Exception):
    """No answer was got; ``transient`` says whether another try may help."""

    def __init__(self, category: Category, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.transient = transient


@dataclass(frozen=True)
class Policy:
    """Where requests may go: public addresses on a few ports, and what the operator allows."""

    allowed_networks: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})

    @classmethod
    def from_settings(cls) -> Self:
        networks = tuple(ip_network(text) for text in settings.EGRESS_ALLOWED_NETWORKS)
        return cls(allowed_networks=networks, ports=frozenset(settings.EGRESS_PORTS))

    def parse(self, url: str) -> str:
        return parse_url(url, allow_local=bool(self.allowed_networks))

    def check(self, addresses: Iterable[Address], port: int) -> None:
        """One bad address refuses them all: a mixed answer is an attack or a mistake."""
        for address in addresses:
            allowed = any(address in network for network in self.allowed_networks)
            if not allowed and not (port in self.ports and is_public(address)):
                raise UrlBlocked(BLOCKED_DETAIL)

    def check_literally(self, host: str, port: int) -> tuple[Address, ...]:
        """Check what needs no lookup; return the addresses of a host that has none to make."""
        if port not in self.ports and not self.allowed_networks:
            raise UrlBlocked(BLOCKED_DETAIL)
        address = LOOPBACK if is_localhost(host) else _literal(host)
        if address is None:
            return ()
        self.check([address], port)
        return (address,)


def _literal(host: str) -> Address | None:
    # Names that end in a number never get here: parse_url takes them as addresses or refuses.
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if host[-1].isdigit() and host.count(".") == 3 else None


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


def resolve_name(host: str) -> list[str]:
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def check_target(url: str, policy: Policy | None = None, *, resolve: Resolve | None = None) -> str:
    """Return the parsed URL if a request to it would be allowed now."""
    policy = policy or Policy.from_settings()
    target = policy.parse(url)
    host, port = host_and_port(target)
    if not policy.check_literally(host, port):
        policy.check(_look_up_in_time(resolve or resolve_name, host), port)
    return target


def _look_up_in_time(resolve: Resolve, host: str) -> list[Address]:
    # getaddrinfo cannot be interrupted: a thread of its own is left behind when it hangs.
    answer: Future[list[Address]] = Future()
    threading.Thread(target=_look_up_into, args=(answer, resolve, host), daemon=True).start()
    try:
        return answer.result(REGISTRATION_LOOKUP_SECONDS)
    except (OSError, UnicodeError):
        raise UrlInvalid("The host name could not be resolved.") from None


def _look_up_into(answer: Future[list[Address]], resolve: Resolve, host: str) -> None:
    try:
        answer.set_result(_look_up(resolve, host))
    except Exception as error:  # noqa: BLE001 - handed to the waiting thread
        answer.set_exception(error)


def _look_up(resolve: Resolve, host: str) -> list[Address]:
    addresses = [ip_address(text) for text in resolve(host)]
    if not addresses:
        raise OSError("no address")
    return addresses


class PinningResolver(AbstractResolver):
    """Resolves a name once, checks every answer and hands out only what was checked."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(DNS_THREADS, thread_name_prefix="dns")
        self._answers: dict[str, tuple[float, list[Address]]] = {}
        self._lookups: dict[str, asyncio.Task[list[Address]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = self._policy.check_literally(host, port) or await self._addresses(host)
        self._policy.check(addresses, port)
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        for lookup in list(self._lookups.values()):
            lookup.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _addresses(self, host: str) -> Sequence[Address]:
        expires_at, addresses = self._answers.get(host, (0.0, []))
        if expires_at > monotonic():
            return addresses
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.create_task(self._look_up(host))
            lookup.add_done_callback(lambda task: self._forget_lookup(host, task))
        # Others wait for the same lookup: one who gives up must not take it from them.
        return await asyncio.shield(lookup)

    async def _look_up(self, host: str) -> list[Address]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await loop.run_in_executor(self._threads, _look_up, self._resolve, host)
        if len(self._answers) >= DNS_CACHE_NAMES:
            self._answers.clear()
        self._answers[host] = (monotonic() + DNS_CACHE_SECONDS, found)
        return found

    def _forget_lookup(self, host: str, task: asyncio.Task[list[Address]]) -> None:
        del self._lookups[host]
        if not task.cancelled():
            task.exception()


@dataclass(frozen=True, slots=True)
class _Limits:
    body_bytes: int
    decoded_bytes: int
    accept_types: tuple[str, ...] | None
    may_follow: Callable[[str], bool] | None = None


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
    ) -> None:
        self._policy = policy or Policy.from_settings()
        self._resolve = resolve or resolve_name
        self._open_socket = socket_factory or _open_socket
        self._user_agent = user_agent or settings.CRAWL_USER_AGENT
        self._connections = connections

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            resolver=PinningResolver(self._policy, self._resolve),
            use_dns_cache=False,
            limit=self._connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            socket_factory=self._dial,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept-Encoding": ACCEPTED_ENCODINGS},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            trust_env=False,
            max_field_size=MAX_HEADER_BYTES,
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._session.close()

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
        may_follow: Callable[[str], bool] | None = None,
    ) -> Response:
        """Return the answer, whatever its status; with no redirects allowed, also a 3xx.

        ``may_follow`` is asked about every target of a redirect. Raises ``UrlInvalid``, ``UrlBlocked`` or ``FetchFailed``.
        """
        limits = _Limits(max_body_bytes, max_decoded_bytes, accept_types, may_follow)
        target = self._clear(url)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._follow(method, target, headers, body, max_redirects, limits)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # Without its cause: that names the address which was dialled.
            raise _failure(error) from None

    async def _follow(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        body: bytes | None,
        max_redirects: int,
        limits: _Limits,
    ) -> Response:
        started = perf_counter()
        for _ in range(max_redirects + 1):
            async with self._session.request(
                method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
            ) as answer:
                location = answer.headers.get("Location") if max_redirects else None
                if answer.status not in REDIRECTS or not location:
                    return await _read(answer, url, limits, started)
            target = self._next_hop(url, location)
            if limits.may_follow is not None and not limits.may_follow(target):
                message = "The page redirects to another site."
                raise FetchFailed("http", message, transient=False)
            if answer.status == 303 or (answer.status in {301, 302} and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
            if headers and origin_of(target) != origin_of(url):
                headers = _without_private(headers)
            url = target
        raise FetchFailed("http", "The page redirects too many times.", transient=False)

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


@lru_cache(maxsize=8192)
def _check_origin(policy: Policy, origin: str) -> None:
    # aiohttp asks no resolver about literal addresses, so they are checked before it.
    policy.check_literally(*host_and_port(origin))


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
    encoding = answer.headers.get("Content-Encoding", "")
    body = _decode(raw, encoding, limits.decoded_bytes)
    elapsed_ms = round((perf_counter() - started) * 1000)
    packed = raw if encoding.strip().lower() == "gzip" else b""
    headers = _readable_headers(answer)
    return Response(url, answer.status, headers, body, elapsed_ms, len(raw), packed)


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


def _failure(error: Exception) -> FetchFailed:
    """Say what went wrong without the address that was dialled."""
    if isinstance(error, TimeoutError):
        return FetchFailed("timeout", "The server did not answer in time.", transient=True)
    if isinstance(error, ClientConnectorDNSError):
        message = "The host name could not be resolved."
        return FetchFailed("network", message, transient=True)
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
