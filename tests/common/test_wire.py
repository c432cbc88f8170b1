from __future__ import annotations

import asyncio

import pytest

from common.http import FetchFailed, Response
from tests.common.test_http import Answer, ask, http, open_egress, shop

CONTINUE = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"


async def close(writer: asyncio.StreamWriter) -> None:
    """A server that takes the connection away without a word."""


def ask_twice(answers: dict[str, Answer], method: str, *paths: str) -> tuple[list[str], Response]:
    """What the server heard, and its last answer."""
    seen: list[str] = []

    async def run() -> Response:
        async with shop(answers, seen) as origin, open_egress() as egress:
            for path in paths:
                answer = await egress.request(method, origin + path)
            return answer

    answer = asyncio.run(run())
    return [head.partition(" HTTP")[0] for head in seen], answer


def test_a_word_in_between_is_no_answer() -> None:
    answer = ask({"/": CONTINUE * 2 + http(200, b"here")})
    assert (answer.status, answer.body) == (200, b"here")


def test_a_page_is_asked_for_again_when_its_connection_was_closed() -> None:
    gone: list[int] = []

    async def once_gone(writer: asyncio.StreamWriter) -> None:
        gone.append(1)
        if len(gone) > 1:
            writer.write(http(200, b"back"))
            await writer.drain()

    heard, answer = ask_twice({"/": http(200), "/page": once_gone}, "GET", "/", "/page")
    assert heard == ["GET /", "GET /page", "GET /page"]
    assert answer.body == b"back"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_hangs_up_on_a_new_connection_is_asked_once(method: str) -> None:
    seen: list[str] = []

    async def run() -> None:
        async with shop({"/": close}, seen) as origin, open_egress() as egress:
            await egress.request(method, origin + "/")

    with pytest.raises(FetchFailed) as failed:
        asyncio.run(run())
    assert (failed.value.category, failed.value.transient) == ("network", True)
    assert len(seen) == 1


def test_an_answer_too_many_is_not_taken_for_the_next_page() -> None:
    async def run() -> list[bytes]:
        pages: dict[str, Answer] = {"/": http(200, b"first") + http(200, b"poison")}
        pages |= {f"/{name}": http(200, name.encode()) for name in "ab"}
        async with shop(pages) as origin, open_egress() as egress:
            paths = ("/", "/a", "/b")
            return [(await egress.request("GET", origin + path)).body for path in paths]

    assert asyncio.run(run()) == [b"first", b"a", b"b"]


def test_what_changes_something_is_never_sent_twice() -> None:
    seen: list[str] = []

    async def run() -> None:
        async with shop({"/": close}, seen) as origin, open_egress() as egress:
            await egress.request("POST", origin + "/", body=b"{}")

    with pytest.raises(FetchFailed):
        asyncio.run(run())
    assert len(seen) == 1


def test_a_head_request_waits_for_no_body() -> None:
    answer = ask_twice({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"}, "HEAD", "/")[1]
    assert (answer.status, answer.body) == (200, b"")


def test_a_body_without_an_end_ends_with_its_connection() -> None:
    async def until_closed(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        await writer.drain()

    assert ask({"/": until_closed}).body == b"all of it"


def test_an_answer_that_was_left_unread_spoils_none_after_it() -> None:
    answers: dict[str, Answer] = {
        "/long": http(200, b"x" * 100_000, Content_Type="video/mp4"),
        "/": http(200, b"page"),
    }

    async def run() -> Response:
        async with shop(answers) as origin, open_egress() as egress:
            with pytest.raises(FetchFailed, match="video/mp4"):
                await egress.request("GET", origin + "/long", accept_types=("text/",))
            start = await egress.request("GET", origin + "/long", first_bytes=10)
            assert start.body == b"x" * 10
            return await egress.request("GET", origin + "/")

    assert asyncio.run(run()).body == b"page"


@pytest.mark.parametrize("text", ["a\r\nHost: evil.example", "a\nb", "a\rb", "a\0b"])
def test_a_header_cannot_bring_another(text: str) -> None:
    seen: list[str] = []

    async def run() -> None:
        async with shop({"/": http(200)}, seen) as origin, open_egress() as egress:
            await egress.request("GET", origin + "/", headers={"X-Own": text})

    with pytest.raises(ValueError, match="line break"):
        asyncio.run(run())
    assert seen == []


def test_what_is_no_http_is_told_so() -> None:
    with pytest.raises(FetchFailed, match="not valid HTTP"):
        ask({"/": b"SSH-2.0-OpenSSH_9.2\r\n\r\n"})


def test_a_header_of_ones_own_stands_in_for_ours() -> None:
    seen: list[str] = []

    async def run() -> None:
        own = {"accept": "text/html", "Accept-encoding": "identity", "USER-AGENT": "Own/2"}
        async with shop({"/": http(200)}, seen) as origin, open_egress() as egress:
            await egress.request("GET", origin + "/?a=1", headers=own)

    asyncio.run(run())
    lines = seen[0].lower().split("\r\n")
    assert lines[0] == "get /?a=1 http/1.1"
    names = [line.partition(":")[0] for line in lines[1:] if line]
    assert sorted(names) == ["accept", "accept-encoding", "host", "user-agent"]
    assert {"accept: text/html", "accept-encoding: identity", "user-agent: own/2"} < set(lines)
