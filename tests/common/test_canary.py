"""A listener on loopback that must hear nothing, whatever way leads to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network

import pytest

from common.errors import Refused
from common.http import Egress, FetchFailed, Policy
from common.proxying import AddressInfo, ProxyAddress
from tests.common.test_http import SHOP_ADDRESS, http, shop

HOSTS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
]
ANSWERS = ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]


class Canary:
    """Listens on one port of every loopback address; ``heard`` says whether anybody came."""

    def __init__(self) -> None:
        self.port = 0
        self._listeners: list[socket.socket] = []

    def open(self) -> None:
        first = socket.create_server(("0.0.0.0", 0))
        self.port = first.getsockname()[1]
        self._listeners.append(first)
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                address = ("::1", self.port)
                self._listeners.append(socket.create_server(address, family=socket.AF_INET6))
        for listener in self._listeners:
            listener.setblocking(False)

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()

    @property
    def heard(self) -> bool:
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                return True
        return False


@pytest.fixture
def canary() -> Iterator[Canary]:
    canary = Canary()
    canary.open()
    yield canary
    canary.close()


def dial_loopback(address_info: AddressInfo) -> socket.socket:
    """Real sockets to this machine and none to any other: a guard that fails is seen."""
    assert ip_address(address_info[4][0]).is_loopback, "this test leaves the machine"
    return socket.socket(*address_info[:3])


def ask(
    canary: Canary,
    url: str,
    *,
    allowed: str = f"{SHOP_ADDRESS}/32",
    resolve: Callable[[str], list[str]] = lambda host: [SHOP_ADDRESS],
    redirects: bool = False,
    proxy: ProxyAddress | None = None,
) -> None:
    policy = Policy((ip_network(allowed),), frozenset({80, 443, canary.port}))

    async def run() -> None:
        async with (
            shop({"/": http(302, Location=url)}) as origin,
            Egress(policy, resolve=resolve, socket_factory=dial_loopback) as egress,
        ):
            with contextlib.suppress(Refused, FetchFailed):
                await egress.request("GET", origin + "/" if redirects else url, proxy=proxy)

    asyncio.run(run())


def test_the_canary_hears_who_comes(canary: Canary) -> None:
    ask(canary, f"http://127.0.0.1:{canary.port}/", allowed="127.0.0.0/8", resolve=lambda h: [])
    assert canary.heard


@pytest.mark.parametrize("redirects", [False, True], ids=["asked", "redirected"])
@pytest.mark.parametrize("host", HOSTS)
def test_no_spelling_of_loopback_reaches_it(canary: Canary, host: str, redirects: bool) -> None:
    ask(canary, f"http://{host}:{canary.port}/", redirects=redirects)
    assert not canary.heard


@pytest.mark.parametrize("redirects", [False, True], ids=["asked", "redirected"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_of_dns_leads_to_it(canary: Canary, answer: str, redirects: bool) -> None:
    url = f"http://shop.example:{canary.port}/"
    for answers in ([answer], [SHOP_ADDRESS, answer], [answer, SHOP_ADDRESS]):
        ask(canary, url, resolve=lambda host, found=answers: found, redirects=redirects)  # type: ignore[misc]
    assert not canary.heard


@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "proxy.example"])
def test_no_proxy_is_it(canary: Canary, kind: str, host: str) -> None:
    proxy = ProxyAddress(kind, host, canary.port)  # type: ignore[arg-type]
    ask(canary, "http://shop.example/", resolve=lambda host: ["127.0.0.1"], proxy=proxy)
    assert not canary.heard
