"""A webhook receiver on loopback that keeps what it got and answers as told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from obsrv.demo.loopback import HOST, LoopbackServer


@dataclass(frozen=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Got], Awaitable[web.Response]]


async def fine(_got: Got) -> web.Response:
    return web.Response(text="thanks")


def always(status: int, **headers: str) -> Answer:
    async def answer(_got: Got) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, headers=named, text=f"status {status}")

    return answer


class Receiver(LoopbackServer):
    def __init__(self, answer: Answer = fine) -> None:
        super().__init__()
        self.answer = answer
        self.got: list[Got] = []

    @property
    def url(self) -> str:
        return f"{super().url}/hooks"

    async def open(self, port: int) -> int:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        got = Got(request.path, dict(request.headers), await request.read())
        self.got.append(got)
        return await self.answer(got)
