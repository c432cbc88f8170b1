"""A webhook receiver on loopback that keeps and verifies what it gets.

``with Receiver(["whsec_…"]) as receiver: receiver.wait_for(type="product.price_changed")``
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from multidict import CIMultiDictProxy

from notifications.signing import BadSignature, verify
from obsrv.demo.loopback import HOST, LoopbackServer

SIGNATURE_HEADER = "X-Obsrv-Signature"
SHUTDOWN_SECONDS = 0.2
UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery attempt; headers are found in any case."""

    path: str
    headers: CIMultiDictProxy[str]
    body: bytes
    event: dict[str, Any]
    verified: bool
    answered: int
    received_at: datetime

    @property
    def type(self) -> str:
        return str(self.event.get("type", ""))

    @property
    def accepted(self) -> bool:
        return 200 <= self.answered < 300


class Receiver(LoopbackServer):
    def __init__(
        self, secrets: Iterable[str] = (), *, port: int = 0, refuses: bool = False
    ) -> None:
        """One that ``refuses`` answers 401 to what does not verify, as a receiver must."""
        super().__init__(port)
        self.secrets = list(secrets)
        self.refuses = refuses
        self._answers: deque[Answer] = deque()
        self._received: list[Received] = []
        self._arrival = threading.Condition()
        self._runner: web.ServerRunner | None = None

    @property
    def deliveries(self) -> list[Received]:
        with self._arrival:
            return list(self._received)

    def clear(self) -> None:
        with self._arrival:
            self._received.clear()

    def answer_with(self, *answers: int | Answer) -> None:
        """Answer the next calls like this, one each; afterwards 200 again."""
        with self._arrival:
            self._answers.extend(
                answer if isinstance(answer, Answer) else Answer(answer) for answer in answers
            )

    def wait_for(
        self, *, type: str | None = None, count: int = 1, timeout: float = 30
    ) -> list[Received]:
        """The attempts of this type, refused ones too, once there are at least ``count``."""
        with self._arrival:
            if self._arrival.wait_for(lambda: len(self._of_type(type)) >= count, timeout):
                return self._of_type(type)
            seen = [received.type for received in self._received]
        raise TimeoutError(f"waited {timeout} s for {count} × {type or 'any event'}, got {seen}")

    def _of_type(self, type_: str | None) -> list[Received]:
        return [received for received in self._received if type_ in (None, received.type)]

    async def open(self, port: int) -> int:
        self._runner = web.ServerRunner(
            web.Server(self._receive, access_log=None), shutdown_timeout=SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _receive(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        with self._arrival:
            answer = self._answers.popleft() if self._answers else Answer()
            received = self._judge(request, body, answer)
            if self.refuses and not received.verified:
                answer = Answer(UNAUTHORIZED)
            self._received.append(replace(received, answered=answer.status))
            self._arrival.notify_all()
        await asyncio.sleep(answer.delay_seconds)
        return web.Response(status=answer.status, headers=answer.headers)

    def _judge(self, request: web.BaseRequest, body: bytes, answer: Answer) -> Received:
        header = request.headers.get(SIGNATURE_HEADER, "")
        return Received(
            path=request.path,
            headers=request.headers,
            body=body,
            event=_parse(body),
            verified=is_signed(body, header, self.secrets),
            answered=answer.status,
            received_at=datetime.now(UTC),
        )


def _parse(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def is_signed(body: bytes, header: str, secrets: Sequence[str]) -> bool:
    try:
        verify(body, header, secrets=secrets, now=time.time())
    except BadSignature:
        return False
    return True
