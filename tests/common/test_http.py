from __future__ import annotations

import asyncio
import gzip
import os
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from common.errors import UrlBlocked, UrlInvalid
from common.guard import DNS_CACHE_SECONDS, PinningResolver
from common.http import Egress, FetchFailed, Policy, Response, check_target
from common.proxying import AddressInfo
from obsrv.demo.loopback import let_go
from tests.common.ssrf_corpus import (
    BAD_ANSWERS,
    PUBLIC_V4,
    PUBLIC_V6,
    REACH_EXAMPLE_COM,
    REFUSED,
)

PUBLIC = Policy()
LOCAL = Policy(allowed_networks=(ip_network("127.0.0.0/8"),))
# One loopback address and no other, so that redirects to the rest of loopback must be refused.
SHOP_ADDRESS = "127.0.0.5"
SHOP_ONLY = Policy(allowed_networks=(ip_network(f"{SHOP_ADDRESS}/32"),))
MIB = 1024 * 1024

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Dialler:
    """Writes down who would be dialled and lets only our own test shop through."""

    def __init__(self) -> None:
        self.dialled: list[str] = []

    def __call__(self, address_info: AddressInfo) -> socket.socket:
        address = address_info[4][0]
        self.dialled.append(address)
        if address != SHOP_ADDRESS:
            raise OSError("this test dials nobody")
        return socket.socket(*address_info[:3])


def resolve_public(_host: str) -> list[str]:
    return [PUBLIC_V4]


def open_egress(
    policy: Policy = LOCAL,
    resolve: Callable[[str], list[str]] = resolve_public,
    dialler: Dialler | None = None,
) -> Egress:
    """The only way these tests open a door: a guard that fails must still dial nobody."""
    dialler = dialler or Dialler()
    return Egress(policy, resolve=resolve, socket_factory=dialler, user_agent="Bot/1")


def http(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    fields = {"Content-Length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {text}\r\n" for name, text in fields.items()]
    return f"HTTP/1.1 {status} X\r\n{''.join(lines)}\r\n".encode() + body


@asynccontextmanager
async def shop(
    answers: dict[str, Answer], seen: list[str] | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """A server on loopback whose answers are raw bytes or a misbehaving function."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if seen is not None:
                    seen.append(head.decode())
                answer = answers.get(head.split()[1].decode(), http(404))
                if callable(answer):
                    await answer(writer)
                    return
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, SHOP_ADDRESS, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with server:
        try:
            yield f"{'https' if tls else 'http'}://{SHOP_ADDRESS}:{port}"
        finally:
            await let_go()


def ask(answers: dict[str, Answer], path: str = "/", **options: Any) -> Response:
    async def run() -> Response:
        async with shop(answers) as origin, open_egress() as egress:
            return await egress.request("GET", origin + path, **options)

    return asyncio.run(run())


def ask_public(url: str, dialler: Dialler, resolve: Callable[[str], list[str]]) -> Response:
    async def run() -> Response:
        async with open_egress(PUBLIC, resolve, dialler) as egress:
            return await egress.request("GET", url)

    return asyncio.run(run())


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(REFUSED)) >= 130


@pytest.mark.parametrize("url", REFUSED)
def test_a_hostile_address_is_refused_at_registration(url: str) -> None:
    with pytest.raises((UrlBlocked, UrlInvalid)):
        check_target(url, PUBLIC, resolve=resolve_public)


@pytest.mark.parametrize("url", REFUSED)
def test_a_hostile_address_is_never_dialled(url: str) -> None:
    dialler = Dialler()
    with pytest.raises((UrlBlocked, UrlInvalid)):
        ask_public(url, dialler, resolve_public)
    assert dialler.dialled == []


@pytest.mark.parametrize("url", REACH_EXAMPLE_COM)
def test_a_deceiving_address_dials_the_host_it_names(url: str) -> None:
    dialler, asked = Dialler(), []

    def resolve(host: str) -> list[str]:
        asked.append(host)
        return [PUBLIC_V4]

    with pytest.raises(FetchFailed, match="connection failed"):
        ask_public(url, dialler, resolve)
    assert asked == ["example.com"]
    assert set(dialler.dialled) == {PUBLIC_V4}


@pytest.mark.parametrize("answers", BAD_ANSWERS, ids=" ".join)
def test_one_private_answer_refuses_the_name(answers: list[str]) -> None:
    dialler = Dialler()
    with pytest.raises(UrlBlocked) as at_registration:
        check_target("http://shop.example/", PUBLIC, resolve=lambda _: answers)
    with pytest.raises(UrlBlocked) as at_fetch:
        ask_public("http://shop.example/", dialler, lambda _: answers)
    assert dialler.dialled == []
    assert at_registration.value.detail == at_fetch.value.detail
    assert not any(answer in at_fetch.value.detail for answer in answers)


def test_a_name_that_turns_private_later_is_not_dialled_there() -> None:
    dialler = Dialler()
    answers = iter([[PUBLIC_V4], ["127.0.0.1"], ["127.0.0.1"]])

    async def run() -> None:
        async with open_egress(PUBLIC, lambda _: next(answers), dialler) as egress:
            for _ in range(3):
                with pytest.raises(FetchFailed):
                    await egress.request("GET", "http://shop.example/")

    asyncio.run(run())
    assert set(dialler.dialled) == {PUBLIC_V4}


def test_a_rebound_name_is_refused_once_its_answer_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[PUBLIC_V4], ["127.0.0.1"]])
    now = time.monotonic()

    async def run() -> None:
        resolver = PinningResolver(PUBLIC, lambda _: next(answers))
        assert (await resolver.resolve("shop.example", 80))[0]["host"] == PUBLIC_V4
        monkeypatch.setattr("common.guard.monotonic", lambda: now + DNS_CACHE_SECONDS + 5)
        with pytest.raises(UrlBlocked):
            await resolver.resolve("shop.example", 80)
        await resolver.close()

    asyncio.run(run())


def test_many_requests_share_one_lookup() -> None:
    asked: list[str] = []

    def resolve(host: str) -> list[str]:
        asked.append(host)
        time.sleep(0.05)
        return [PUBLIC_V4, PUBLIC_V6]

    async def run() -> None:
        resolver = PinningResolver(PUBLIC, resolve)
        found = await asyncio.gather(*(resolver.resolve("shop.example", 80) for _ in range(20)))
        assert {answer["host"] for answer in found[0]} == {PUBLIC_V4, PUBLIC_V6}
        await resolver.close()

    asyncio.run(run())
    assert asked == ["shop.example"]


def test_the_dialler_checks_even_an_address_that_nobody_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialler = Dialler()
    monkeypatch.setattr("common.http.Egress._check_literally", lambda *_: None)
    with pytest.raises(UrlBlocked):
        ask_public("http://93.184.216.34:22/", dialler, resolve_public)
    assert dialler.dialled == []


def test_a_registration_answers_in_time_when_dns_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.guard.REGISTRATION_LOOKUP_SECONDS", 0.05)

    def hang(_host: str) -> list[str]:
        time.sleep(0.5)
        return [PUBLIC_V4]

    with pytest.raises(UrlInvalid, match="could not be resolved"):
        check_target("http://shop.example/", PUBLIC, resolve=hang)


def fail_to_resolve(_host: str) -> list[str]:
    raise socket.gaierror(socket.EAI_NONAME, "unknown")


def test_an_unknown_name_is_invalid_at_registration_and_transient_at_fetch() -> None:
    with pytest.raises(UrlInvalid, match="could not be resolved"):
        check_target("http://shop.example/", PUBLIC, resolve=fail_to_resolve)
    with pytest.raises(FetchFailed) as failed:
        ask_public("http://shop.example/", Dialler(), fail_to_resolve)
    assert (failed.value.category, failed.value.transient) == ("network", True)


def test_a_public_shop_passes_registration() -> None:
    url = "HTTPS://Shop.Example:8443/a#b"
    assert check_target(url, PUBLIC, resolve=resolve_public) == "https://shop.example:8443/a"


def test_an_allowed_network_frees_its_ports_and_nothing_else() -> None:
    assert check_target("http://127.0.0.1:41234/", LOCAL) == "http://127.0.0.1:41234/"
    assert check_target("http://shop1.localhost:41234/", LOCAL) == "http://shop1.localhost:41234/"
    for url in ("http://10.0.0.1/", "http://[::1]/", "http://shop.example:41234/"):
        with pytest.raises(UrlBlocked):
            check_target(url, LOCAL, resolve=resolve_public)
    inside = check_target("http://shop.example:41234/", LOCAL, resolve=lambda _: ["127.0.0.1"])
    assert inside == "http://shop.example:41234/"


def test_the_policy_comes_from_the_settings(settings: Any) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["10.1.0.0/16"]
    settings.EGRESS_PORTS = [443]
    assert Policy.from_settings() == Policy((ip_network("10.1.0.0/16"),), frozenset({443}))


REDIRECTABLE = [url for url in REFUSED if url.isprintable() and len(url) < 2100 and url.strip()]


@pytest.mark.parametrize("target", REDIRECTABLE)
def test_a_redirect_to_a_hostile_address_is_not_followed(target: str) -> None:
    dialler = Dialler()

    async def run() -> None:
        async with (
            shop({"/": http(302, Location=target)}) as origin,
            open_egress(SHOP_ONLY, dialler=dialler) as egress,
        ):
            # Some corpus entries are relative references and stay with the shop.
            with suppress(UrlBlocked, FetchFailed):
                answer = await egress.request("GET", origin + "/")
                assert answer.url.startswith(origin)

    asyncio.run(run())
    assert set(dialler.dialled) == {SHOP_ADDRESS}


def test_a_redirect_to_a_private_address_is_reported_as_blocked() -> None:
    with pytest.raises(UrlBlocked):
        ask({"/": http(302, Location="http://169.254.169.254/latest/meta-data/")})
    with pytest.raises(FetchFailed, match="malformed") as failed:
        ask({"/": http(302, Location="file:///etc/passwd")})
    assert (failed.value.category, failed.value.transient) == ("validation", False)


def test_redirects_are_followed_to_the_page() -> None:
    answers: dict[str, Answer] = {
        "/": http(301, Location="/ä b?x=ü"),
        "/%C3%A4%20b?x=%C3%BC": http(307, Location="page#top"),
        "/page": http(200, b"here", Content_Type="text/html"),
    }
    answer = ask(answers)
    assert (answer.status, answer.body, answer.url[-5:]) == (200, b"here", "/page")


def test_a_redirect_loop_ends() -> None:
    with pytest.raises(FetchFailed, match="too many times") as failed:
        ask({"/": http(302, Location="/")})
    assert (failed.value.category, failed.value.transient) == ("http", False)


def test_without_redirects_the_redirect_is_the_answer() -> None:
    answer = ask({"/": http(302, Location="http://169.254.169.254/")}, max_redirects=0)
    assert answer.status == 302


def test_a_redirected_post_becomes_a_get_and_keeps_its_secrets_at_home() -> None:
    seen: list[str] = []

    async def run() -> None:
        async with (
            shop({"/": http(200, b"other")}, seen) as other,
            shop({"/": http(303, Location=other + "/")}, seen) as origin,
            open_egress() as egress,
        ):
            headers = {"Authorization": "Bearer secret", "X-Kept": "yes"}
            await egress.request("POST", origin + "/", headers=headers, body=b"{}")

    asyncio.run(run())
    first, second = seen
    assert first.startswith("POST / ")
    assert "Bearer secret" in first
    assert second.startswith("GET / ")
    assert "Bearer secret" not in second
    assert "X-Kept: yes" in second


@pytest.mark.parametrize("status", [204, 304, 404, 429, 500, 503])
def test_a_status_is_an_answer_and_not_an_error(status: int) -> None:
    answer = ask({"/": http(status, Retry_After="120")})
    assert answer.status == status
    assert answer.headers["retry-AFTER"] == "120"


def test_odd_bytes_in_headers_become_storable_text() -> None:
    odd = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \xff\xc3\xa4\r\n\r\nx"
    assert ask({"/": odd}).headers["etag"] == "\ufffdä"


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


PAGE = b"<html>" + b"<p>12.99</p>" * 500


def packed(body: bytes, level: int = 9) -> bytes:
    """Without the time of day, which would name tests differently in each worker."""
    return gzip.compress(body, level, mtime=0)


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (packed(PAGE), "gzip"),
        (packed(PAGE), "X-GZIP"),
        (packed(PAGE[:100]) + packed(PAGE[100:]) + b"tail", "gzip"),
        (zlib.compress(PAGE), "deflate"),
        (raw_deflate(PAGE), "deflate"),
        (PAGE, "identity"),
    ],
    ids=["gzip", "x-gzip", "members", "zlib", "deflate", "identity"],
)
def test_a_packed_page_is_unpacked(packed: bytes, encoding: str) -> None:
    answer = ask({"/": http(200, packed, Content_Encoding=encoding)})
    assert answer.body == PAGE
    assert answer.wire_bytes == len(packed)


@pytest.mark.parametrize(
    ("packed", "encoding", "category"),
    [
        (packed(PAGE)[:-9], "gzip", "network"),
        (b"not packed at all", "gzip", "network"),
        (b"anything", "lzma", "validation"),
        (packed(packed(PAGE)), "gzip, gzip", "validation"),
    ],
)
def test_a_badly_packed_page_fails(packed: bytes, encoding: str, category: str) -> None:
    with pytest.raises(FetchFailed) as failed:
        ask({"/": http(200, packed, Content_Encoding=encoding)})
    assert failed.value.category == category


@pytest.mark.parametrize(
    "bomb",
    [
        packed(bytes(200 * MIB), 9),
        packed(bytes(2 * MIB), 9),
        packed(bytes(MIB), 1) * 40,
    ],
    ids=["past the limit", "past the ratio", "many members"],
)
def test_a_gzip_bomb_is_not_unpacked(bomb: bytes) -> None:
    with pytest.raises(FetchFailed) as failed:
        ask({"/": http(200, bomb, Content_Encoding="gzip")})
    assert (failed.value.category, failed.value.transient) == ("too_large", False)


def test_a_small_page_may_pack_well() -> None:
    body = bytes(MIB)
    assert ask({"/": http(200, packed(body), Content_Encoding="gzip")}).body == body


async def pour(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(os.urandom(64 * 1024))
        await writer.drain()


def announce(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size


@pytest.mark.parametrize("answer", [pour, announce(6 * MIB)], ids=["endless", "announced"])
def test_a_body_over_the_limit_is_cut_off(answer: Answer) -> None:
    with pytest.raises(FetchFailed) as failed:
        ask({"/": answer})
    assert failed.value.category == "too_large"


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(announce(1000))
    while not writer.is_closing():
        writer.write(b".")
        await asyncio.sleep(0.02)


async def stay_silent(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


@pytest.mark.parametrize("answer", [drip, stay_silent])
def test_a_slow_server_is_stopped_by_the_wall_clock(answer: Answer) -> None:
    started = time.monotonic()
    with pytest.raises(FetchFailed) as failed:
        ask({"/": answer}, timeout_seconds=0.2)
    assert (failed.value.category, failed.value.transient) == ("timeout", True)
    assert time.monotonic() - started < 2


def test_a_type_in_no_known_letters_is_refused_in_plain_text() -> None:
    odd = b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe/x\r\nContent-Length: 1\r\n\r\nx"
    with pytest.raises(FetchFailed) as failed:
        ask({"/": odd}, accept_types=("text/",))
    assert failed.value.category == "validation"
    str(failed.value).encode()


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.write(announce(1000))
    await writer.drain()
    writer.transport.abort()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def talk_nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 ready for mail\r\n\r\n")


@pytest.mark.parametrize("answer", [reset, hang_up, talk_nonsense])
def test_a_broken_connection_is_a_transient_network_failure(answer: Answer) -> None:
    with pytest.raises(FetchFailed) as failed:
        ask({"/": answer})
    assert (failed.value.category, failed.value.transient) == ("network", True)


def make_own_certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SHOP_ADDRESS)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "shop.pem"
    file.write_bytes(key.private_bytes(pem, *plain) + certificate.public_bytes(pem))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    seen: list[str] = []

    async def run() -> None:
        tls = make_own_certificate(tmp_path)
        async with shop({"/": http(200)}, seen, tls) as origin, open_egress() as egress:
            await egress.request("GET", origin + "/")

    with pytest.raises(FetchFailed, match="secure connection") as failed:
        asyncio.run(run())
    assert failed.value.category == "network"
    assert seen == []


def test_a_closed_port_is_reported_without_its_address() -> None:
    async def run() -> None:
        async with shop({}) as origin:
            pass
        async with open_egress() as egress:
            await egress.request("GET", origin + "/")

    with pytest.raises(FetchFailed) as failed:
        asyncio.run(run())
    assert failed.value.category == "network"
    assert SHOP_ADDRESS not in str(failed.value)
    assert failed.value.__cause__ is None


@pytest.mark.parametrize(
    "headers",
    [{"X-Big": "a" * 70_000}, {f"X-{number}": "a" * 1000 for number in range(70)}],
    ids=["one", "many"],
)
def test_headers_over_the_limit_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(FetchFailed) as failed:
        ask({"/": http(200, b"x", **headers)})
    assert failed.value.category == "too_large"


def test_a_content_type_that_was_not_asked_for_is_not_read() -> None:
    answers: dict[str, Answer] = {
        "/film": http(200, b"x", Content_Type="video/mp4"),
        "/page": http(200, b"x", Content_Type="Text/HTML; charset=utf-8"),
        "/gone": http(404, b"x", Content_Type="image/png"),
    }
    wanted = ("text/html", "application/xhtml+xml")
    assert ask(answers, "/page", accept_types=wanted).body == b"x"
    assert ask(answers, "/gone", accept_types=wanted).status == 404
    with pytest.raises(FetchFailed, match="video/mp4") as failed:
        ask(answers, "/film", accept_types=wanted)
    assert failed.value.category == "validation"


def run_session(work: Callable[[Egress, str], Coroutine[Any, Any, None]]) -> list[str]:
    seen: list[str] = []

    async def run() -> None:
        answers: dict[str, Answer] = {"/": http(200, b"x", Set_Cookie="a=b; Path=/")}
        async with shop(answers, seen) as origin, open_egress() as egress:
            await work(egress, origin)

    asyncio.run(run())
    return seen


def test_requests_name_us_and_carry_no_cookies() -> None:
    async def ask_twice(egress: Egress, origin: str) -> None:
        await egress.request("GET", origin + "/")
        await egress.request("GET", origin + "/", headers={"If-None-Match": '"1"'})

    _, second = run_session(ask_twice)
    assert "User-Agent: Bot/1" in second
    assert "Accept-Encoding: gzip, deflate, br, zstd\r\n" in second
    assert 'If-None-Match: "1"' in second
    assert "Cookie" not in second


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.9:9/")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.9:9/")

    async def ask_once(egress: Egress, origin: str) -> None:
        assert (await egress.request("GET", origin + "/")).status == 200

    assert len(run_session(ask_once)) == 1


def test_a_connection_is_kept_for_the_next_page() -> None:
    dialler = Dialler()

    async def run() -> None:
        async with (
            shop({"/": http(200, b"x")}) as origin,
            open_egress(dialler=dialler) as egress,
        ):
            for _ in range(5):
                await egress.request("GET", origin + "/")

    asyncio.run(run())
    assert dialler.dialled == [SHOP_ADDRESS]


def test_a_localhost_name_needs_no_dns_when_loopback_is_allowed() -> None:
    seen: list[tuple[str, int]] = []

    async def run() -> None:
        resolver = PinningResolver(LOCAL, fail_to_resolve)
        seen.extend((a["host"], a["port"]) for a in await resolver.resolve("a.localhost", 4123))
        await resolver.close()

    asyncio.run(run())
    assert seen == [("127.0.0.1", 4123)]
