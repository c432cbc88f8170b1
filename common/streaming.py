"""Long answers, sent as they are made. An ASGI server would gather a plain iterator first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


def streamed(
    request: HttpRequest, chunks: Iterator[bytes], *, content_type: str
) -> StreamingHttpResponse:
    content = _in_turn(chunks) if isinstance(request, ASGIRequest) else chunks
    return StreamingHttpResponse(content, content_type=content_type)


async def _in_turn(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    def following() -> bytes | None:
        return next(chunks, None)

    while (chunk := await sync_to_async(following)()) is not None:
        yield chunk
