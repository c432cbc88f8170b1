"""Who may be dialled: every address is checked, and only what was checked is handed out."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Self
from weakref import WeakValueDictionary

from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings

from common.addresses import Address, Network, is_public
from common.errors import UrlBlocked, UrlInvalid
from common.urls import BLOCKED_DETAIL, host_and_port, is_localhost, parse_url

# Gives the addresses of a host name as text; raises OSError when it has none.
Resolve = Callable[[str], Sequence[str]]

LOOKUP_SECONDS = 5
REGISTRATION_LOOKUP_SECONDS = 3
DNS_CACHE_SECONDS = 60
DNS_CACHE_NAMES = 10_000
# A thread is lost for as long as a name server keeps silent: no site may take them all.
DNS_THREADS = 64
SITE_THREADS = 4
LOOPBACK = IPv4Address("127.0.0.1")


@dataclass(frozen=True)
class Policy:
    """Where requests may go: public addresses on a few ports, and what the operator allows."""

    allowed_networks: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    any_port: bool = False

    @classmethod
    def from_settings(cls) -> Self:
        networks = tuple(ip_network(text) for text in settings.EGRESS_ALLOWED_NETWORKS)
        return cls(allowed_networks=networks, ports=frozenset(settings.EGRESS_PORTS))

    def for_proxies(self) -> Self:
        """Operators name proxies, and these listen anywhere; their addresses obey the same."""
        return replace(self, any_port=True)

    def parse(self, url: str) -> str:
        return parse_url(url, allow_local=bool(self.allowed_networks))

    def check(self, addresses: Iterable[Address], port: int) -> None:
        """One bad address refuses them all: a mixed answer is an attack or a mistake."""
        for address in addresses:
            allowed = any(address in network for network in self.allowed_networks)
            if not allowed and not (self._takes(port) and is_public(address)):
                raise UrlBlocked(BLOCKED_DETAIL)

    def check_literally(self, host: str, port: int) -> tuple[Address, ...]:
        """Check what needs no lookup; return the addresses of a host that has none to make."""
        if not self._takes(port) and not self.allowed_networks:
            raise UrlBlocked(BLOCKED_DETAIL)
        address = LOOPBACK if is_localhost(host) else _literal(host)
        if address is None:
            return ()
        self.check([address], port)
        return (address,)

    def _takes(self, port: int) -> bool:
        return self.any_port or port in self.ports


def _literal(host: str) -> Address | None:
    # Names that end in a number never get here: parse_url takes them as addresses or refuses.
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if host[-1].isdigit() and host.count(".") == 3 else None


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


def site_of(host: str) -> str:
    """What one owner holds, near enough: ``shop.example`` or ``shop.co.uk``."""
    labels = host.split(".")
    national = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if national else labels[-2:])


class PinningResolver(AbstractResolver):
    """Resolves a name once, checks every answer and hands out only what was checked."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(DNS_THREADS, thread_name_prefix="dns")
        self._answers: dict[str, tuple[float, list[Address]]] = {}
        self._lookups: dict[str, asyncio.Task[list[Address]]] = {}
        self._lanes: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

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
        lane = self._lanes.setdefault(site_of(host), asyncio.Semaphore(SITE_THREADS))
        async with asyncio.timeout(LOOKUP_SECONDS):
            await lane.acquire()
            found = await asyncio.wrap_future(self._begin(host, lane))
        if len(self._answers) >= DNS_CACHE_NAMES:
            self._answers.clear()
        self._answers[host] = (monotonic() + DNS_CACHE_SECONDS, found)
        return found

    def _begin(self, host: str, lane: asyncio.Semaphore) -> Future[list[Address]]:
        """The lane is taken until the thread comes back, also when nobody waits any more."""
        loop = asyncio.get_running_loop()

        def leave(_lookup: object) -> None:
            # The loop may be over by then.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lane.release)

        lookup = self._threads.submit(_look_up, self._resolve, host)
        lookup.add_done_callback(leave)
        return lookup

    def _forget_lookup(self, host: str, task: asyncio.Task[list[Address]]) -> None:
        del self._lookups[host]
        if not task.cancelled():
            task.exception()
