from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from common.errors import UrlBlocked
from common.http import Egress, FetchFailed, Policy, ProxyAddress, Response
from common.proxying import AddressInfo
from tests.common.ssrf_corpus import BAD_ANSWERS, PUBLIC_V4
from tests.common.test_http import SHOP_ADDRESS, Answer, http, make_own_certificate, shop
from tests.shop.proxies import (
    LISTEN,
    HttpProxy,
    LoopbackProxy,
    Socks5Proxy,
    hang_up,
    keep_waiting,
)

# The shop and the proxies; the rest of loopback is as private as any other private network.
POLICY = Policy(
    allowed_networks=(ip_network(f"{SHOP_ADDRESS}/32"), ip_network(f"{LISTEN}/32")),
)
LOGIN = ("ann", "s3cret:canary")
NAME = "shop.example"
KINDS = ["http", "https", "socks5"]
PAGES: dict[str, Answer] = {"/": http(200, b"hello"), "/away": http(302, Location="/")}


class Dialler:
    """Lets nobody be dialled but the proxies."""

    def __init__(self) -> None:
        self.dialled: list[str] = []

    def __call__(self, address_info: AddressInfo) -> socket.socket:
        address = address_info[4][0]
        self.dialled.append(address)
        if address != LISTEN:
            raise OSError("this test dials proxies only")
        return socket.socket(*address_info[:3])


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Ours for servers, and one for clients that trusts it."""
    server = make_own_certificate(tmp_path)
    pem = next(tmp_path.glob("*.pem")).read_bytes()
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    client = ssl.create_default_context(cadata=certificate.public_bytes(Encoding.PEM).decode())
    client.check_hostname = False
    return server, client


@pytest.fixture
def open_proxy(tls: Any) -> Iterator[Callable[..., LoopbackProxy]]:
    running: list[LoopbackProxy] = []

    def start(kind: str, login: tuple[str, str] | None = None) -> LoopbackProxy:
        if kind == "socks5":
            made: LoopbackProxy = Socks5Proxy(login=login)
        else:
            made = HttpProxy(login=login, tls=tls[0] if kind == "https" else None)
        made.hosts[NAME] = SHOP_ADDRESS
        running.append(made.__enter__())
        return made

    yield start
    for proxy in running:
        proxy.__exit__()


def ask(
    proxy: ProxyAddress,
    answers: dict[str, Answer] = PAGES,
    path: str = "/",
    *,
    dialler: Dialler | None = None,
    client: ssl.SSLContext | None = None,
    server: ssl.SSLContext | None = None,
    origin: str | None = None,
    resolve: Callable[[str], list[str]] = lambda _: [SHOP_ADDRESS],
    policy: Policy = POLICY,
    times: int = 1,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **options: Any,
) -> Response:
    async def run() -> Response:
        async with shop(answers, tls=server) as here:
            url = origin or here.replace(SHOP_ADDRESS, NAME)
            door = Egress(
                policy,
                resolve=resolve,
                socket_factory=dialler or Dialler(),
                user_agent="Bot/1",
                tls=client,
            )
            try:
                async with door as egress:
                    for _ in range(times):
                        answer = await egress.request("GET", url + path, proxy=proxy, **options)
            finally:
                # TLS says goodbye in its own time.
                await asyncio.sleep(0.05)
            return answer

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(run())


@pytest.mark.parametrize("login", [None, LOGIN], ids=["open", "login"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_fetched_through_a_proxy(
    kind: str, secure: bool, login: Any, open_proxy: Any, tls: Any
) -> None:
    proxy, dialler = open_proxy(kind, login), Dialler()
    answer = ask(
        proxy.address(*(login or ())),
        dialler=dialler,
        client=tls[1],
        server=tls[0] if secure else None,
        path="/away",
    )
    assert (answer.status, answer.body) == (200, b"hello")
    assert set(dialler.dialled) == {LISTEN}
    word = {"socks5": SHOP_ADDRESS}.get(kind, f"CONNECT {NAME}" if secure else "GET http://")
    assert proxy.requests
    assert all(request.startswith(word) for request in proxy.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_workers_loops_can_do_tls_within_tls(kind: str, open_proxy: Any, tls: Any) -> None:
    proxy = open_proxy(kind)
    answer = ask(proxy.address(), client=tls[1], server=tls[0], loop_factory=uvloop.new_event_loop)
    assert answer.body == b"hello"


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_tunnel_is_used_again(kind: str, open_proxy: Any, tls: Any) -> None:
    proxy = open_proxy(kind)
    ask(proxy.address(), client=tls[1], server=tls[0], times=3)
    assert proxy.connections == 1


def test_the_shop_never_sees_the_login_of_the_proxy(open_proxy: Any, tls: Any) -> None:
    proxy = open_proxy("http", LOGIN)
    seen: list[str] = []

    async def run() -> None:
        async with shop(PAGES, seen, tls=tls[0]) as origin:
            door = Egress(POLICY, resolve=lambda _: [SHOP_ADDRESS], tls=tls[1])
            async with door as egress:
                await egress.request("GET", f"{origin}/", proxy=proxy.address(*LOGIN))

    asyncio.run(run())
    assert len(seen) == 1
    assert "proxy-" not in seen[0].lower()


def failure_of(*args: Any, **options: Any) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        ask(*args, **options)
    return caught.value


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_is_the_proxys_failure_and_is_never_told(
    kind: str, secure: bool, open_proxy: Any, tls: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    proxy = open_proxy(kind, LOGIN)
    address = proxy.address("ann", "wrong-canary")
    failed = failure_of(address, client=tls[1], server=tls[0] if secure else None)
    assert (failed.category, failed.transient, failed.via_proxy) == ("network", True, True)
    assert proxy.requests == []
    for text in (str(failed), repr(failed), repr(address), caplog.text):
        assert "canary" not in text
    assert failed.__cause__ is None
    assert LISTEN not in str(failed)


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_proxy_is_the_proxys_failure(kind: str, secure: bool, tls: Any) -> None:
    with socket.socket() as unused:
        unused.bind((LISTEN, 0))
        address = ProxyAddress(kind, LISTEN, unused.getsockname()[1])  # type: ignore[arg-type]
        failed = failure_of(address, client=tls[1], server=tls[0] if secure else None)
    assert (failed.category, failed.via_proxy) == ("network", True)


@pytest.mark.parametrize(
    "script",
    [b"\x00garbage\r\n\r\n" * 9, b"HTTP/1.1 502 Bad\r\n\r\n", b"\x05\x00\x05\x01", hang_up],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_that_answers_nonsense_is_the_proxys_failure(
    kind: str, script: Any, open_proxy: Any, tls: Any
) -> None:
    proxy = open_proxy(kind)
    proxy.script = script
    failed = failure_of(proxy.address(), client=tls[1], server=tls[0])
    assert (failed.category, failed.via_proxy) == ("network", True)


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_that_never_answers_is_the_proxys_failure(
    kind: str, secure: bool, open_proxy: Any, tls: Any
) -> None:
    proxy = open_proxy(kind)
    proxy.script = keep_waiting
    failed = failure_of(
        proxy.address(), client=tls[1], server=tls[0] if secure else None, timeout_seconds=0.3
    )
    assert (failed.category, failed.via_proxy) == ("network", True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_shop_that_fails_behind_a_tunnel_is_the_shops_failure(
    kind: str, open_proxy: Any, tls: Any
) -> None:
    proxy = open_proxy(kind)
    answers: dict[str, Answer] = {"/": keep_waiting, "/cut": hang_up}
    # Long enough for the tunnel to stand also on a busy machine.
    for path, category, patience in (("/", "timeout", 3), ("/cut", "network", 30)):
        failed = failure_of(
            proxy.address(), answers, path, client=tls[1], server=tls[0], timeout_seconds=patience
        )
        assert (failed.category, failed.via_proxy) == (category, False)


def test_a_forbidden_page_of_the_shop_is_an_answer(open_proxy: Any) -> None:
    answer = ask(open_proxy("http").address(), {"/": http(403, b"no")})
    assert (answer.status, answer.body) == (403, b"no")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answers", BAD_ANSWERS[:4], ids=" ".join)
def test_a_private_shop_is_refused_before_the_proxy_hears_of_it(
    kind: str, answers: list[str], open_proxy: Any
) -> None:
    proxy = open_proxy(kind)
    with pytest.raises(UrlBlocked):
        ask(proxy.address(), origin=f"http://{NAME}", resolve=lambda _: answers)
    with pytest.raises(UrlBlocked):
        ask(proxy.address(), origin="http://127.0.0.9")
    assert proxy.connections == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_redirect_to_a_private_address_stops_before_the_proxy(
    kind: str, open_proxy: Any, tls: Any
) -> None:
    proxy = open_proxy(kind)
    names = {NAME: [SHOP_ADDRESS], "inside.example": ["10.0.0.1"]}
    answers: dict[str, Answer] = {"/": http(302, Location="http://inside.example/")}
    with pytest.raises(UrlBlocked):
        ask(proxy.address(), answers, resolve=lambda host: names[host], client=tls[1])
    assert len(proxy.requests) == 1


def test_a_name_without_an_address_is_not_the_proxys_failure(open_proxy: Any) -> None:
    def resolve(_host: str) -> list[str]:
        raise OSError("no such name")

    proxy = open_proxy("http")
    failed = failure_of(proxy.address(), origin=f"http://{NAME}", resolve=resolve)
    assert (str(failed), failed.via_proxy) == ("The host name could not be resolved.", False)
    assert proxy.connections == 0


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", ["10.0.0.1", "127.1", "proxy.example", "999.1.1.1", "x.local", ""])
def test_a_proxy_at_a_private_address_is_never_dialled(kind: str, secure: bool, host: str) -> None:
    dialler = Dialler()
    names = {NAME: [PUBLIC_V4], "proxy.example": [PUBLIC_V4, "10.0.0.1"]}
    failed = failure_of(
        ProxyAddress(kind, host, 3128),  # type: ignore[arg-type]
        origin=f"http{'s' if secure else ''}://{NAME}",
        policy=Policy(),
        resolve=lambda name: names.get(name, ["127.0.0.1"]),
        dialler=dialler,
    )
    assert (failed.category, failed.via_proxy) == ("network", True)
    assert dialler.dialled == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_proxy_may_listen_on_any_port(kind: str) -> None:
    dialler = Dialler()
    address = ProxyAddress(kind, "proxy.example", 31_112)  # type: ignore[arg-type]
    failed = failure_of(
        address,
        origin=f"http://{NAME}",
        policy=Policy(),
        resolve=lambda _: [PUBLIC_V4],
        dialler=dialler,
    )
    assert failed.via_proxy
    assert set(dialler.dialled) == {PUBLIC_V4}
