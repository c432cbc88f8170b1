from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pytest_django import Settings

from common.asgi import BodyLimit


def test_a_body_without_a_length_is_not_read_past_the_limit(settings: Settings) -> None:
    settings.API_BODY_MAX_BYTES = 100
    chunks = iter([b"x" * 60] * 1000)
    read: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(chunks), "more_body": True}

    async def send(_message: Mapping[str, Any]) -> None:
        """Nothing is answered here."""

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while True:
            read.append(await receive())
            if not read[-1]["more_body"]:
                return

    asyncio.run(BodyLimit(app)({"type": "http"}, receive, send))
    assert sum(len(message["body"]) for message in read) == 120
