"""A server in a thread of its own, reachable only from this machine."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
START_TIMEOUT_SECONDS = 10
STOP_TIMEOUT_SECONDS = 10


class LoopbackServer:
    """Start and stop from any thread; ``open`` and ``close`` run in the server's own loop."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def open(self, port: int) -> int:
        """Listen on the port (0 means any) and return the one taken."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def start(self) -> Self:
        if self._loop is not None:
            raise RuntimeError("already started")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=type(self).__name__, daemon=True
        )
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self.open(self.port), self._loop)
        try:
            # The port is kept, so that a stopped server comes back at the same address.
            self.port = opening.result(START_TIMEOUT_SECONDS)
        except BaseException:
            self._end_loop()
            raise
        return self

    def stop(self) -> None:
        if self._loop is None:
            return
        closing = asyncio.run_coroutine_threadsafe(self.close(), self._loop)
        try:
            closing.result(STOP_TIMEOUT_SECONDS)
        finally:
            self._end_loop()

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(let_go(), loop).result(STOP_TIMEOUT_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_TIMEOUT_SECONDS)
        loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


async def let_go() -> None:
    """End what outlives a server that was closed: a connection whose other side does not
    read is never flushed, and one that came last is known to nobody."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    # Before the tasks are waited for: some wait for their connection to end.
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # the aborted are told in the next round
