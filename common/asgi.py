"""What must be stopped before Django sees a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Ends a body just past the limit: Django would spool all of it to disk before it looks.

    What it gets is too large by a little, so that it answers 413 as for any other."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if message["type"] == "http.request" and seen > settings.API_BODY_MAX_BYTES:
                return {**message, "more_body": False}
            return message

        await self.app(scope, limited, send)
