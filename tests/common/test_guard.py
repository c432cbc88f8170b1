from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from common import guard
from common.guard import DNS_THREADS, PinningResolver, Policy, site_of
from tests.common.ssrf_corpus import PUBLIC_V4


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Ends the look-ups that hang."""
    event = threading.Event()
    yield event
    event.set()


def test_slow_names_of_one_site_leave_the_others_their_look_ups(over: threading.Event) -> None:
    def resolve(host: str) -> list[str]:
        if host.endswith("slow.example"):
            over.wait(30)
        return [PUBLIC_V4]

    async def run() -> str:
        resolver = PinningResolver(Policy(), resolve)
        slow = [
            asyncio.create_task(resolver.resolve(f"n{number}.slow.example", 80))
            for number in range(2 * DNS_THREADS)
        ]
        await asyncio.sleep(0)
        try:
            (answer,) = await resolver.resolve("shop.example", 80)
        finally:
            over.set()
            await asyncio.gather(*slow)
            await resolver.close()
        return answer["host"]

    assert asyncio.run(run()) == PUBLIC_V4


def test_a_look_up_that_was_given_up_ends_without_its_loop(
    over: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard, "LOOKUP_SECONDS", 0.05)
    ended = threading.Event()

    def resolve(_host: str) -> list[str]:
        over.wait(30)
        ended.set()
        return [PUBLIC_V4]

    async def run() -> None:
        resolver = PinningResolver(Policy(), resolve)
        with pytest.raises(TimeoutError):
            await resolver.resolve("shop.example", 80)
        await resolver.close()

    asyncio.run(run())
    over.set()
    assert ended.wait(30)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("shop.example", "shop.example"),
        ("a.b.shop.example", "shop.example"),
        ("www.shop.co.uk", "shop.co.uk"),
        ("shop.com.br", "shop.com.br"),
        ("shop.de", "shop.de"),
        ("localhost", "localhost"),
    ],
)
def test_names_of_one_owner_are_one_site(host: str, site: str) -> None:
    assert site_of(host) == site
