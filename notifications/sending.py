"""Carrying signed parcels to receivers, many at a time, in an event loop of its own thread."""

from __future__ import annotations

import asyncio
import datetime as dt
import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self

from django.utils import timezone

from common.errors import Refused
from common.http import Egress, FetchFailed, Response
from notifications.signing import signature_header, standard_headers

USER_AGENT = "Obsrv-Webhooks/1"
RESPONSE_BYTES = 4096
RESPONSE_HEADERS = 30
RESPONSE_HEADER_CHARS = 500


@dataclass(frozen=True)
class Target:
    """An endpoint as it was when its deliveries were claimed."""

    id: uuid.UUID
    url: str
    timeout_seconds: float
    secrets: tuple[str, ...] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    throttled: bool = False
    # Why nothing can be sent there.
    problem: str = ""


@dataclass(frozen=True)
class Parcel:
    """A claimed delivery; ``number`` is the try that is about to be made."""

    delivery_id: uuid.UUID
    fence: int
    number: int
    event_id: uuid.UUID
    event_type: str
    body: bytes
    target: Target


@dataclass(frozen=True)
class Outcome:
    """What came of one try; ``http_status`` is None when nothing was answered."""

    parcel: Parcel
    attempted_at: dt.datetime
    signature: str = ""
    standard_signature: str = ""
    http_status: int | None = None
    duration_ms: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""
    retry_after: str = ""
    error: str = ""

    @property
    def succeeded(self) -> bool:
        return self.http_status is not None and self.http_status // 100 == 2


def request_headers(
    *, delivery_id: uuid.UUID, event_id: str, event_type: str, signature: str
) -> dict[str, str]:
    """Everything but the Standard Webhooks marks; also what the log of a try shows."""
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Obsrv-Event": event_type,
        "X-Obsrv-Delivery": str(delivery_id),
        "X-Obsrv-Signature": signature,
        "webhook-id": event_id,
    }


async def send(egress: Egress, parcel: Parcel) -> Outcome:
    """One signed POST; every failure that can come from outside is an outcome."""
    attempted_at, started = timezone.now(), time.monotonic()
    if parcel.target.problem:
        return Outcome(parcel, attempted_at, error=parcel.target.problem)
    headers = _sign(parcel, int(attempted_at.timestamp()))
    unanswered = Outcome(
        parcel,
        attempted_at,
        signature=headers["X-Obsrv-Signature"],
        standard_signature=headers["webhook-signature"],
    )
    try:
        response = await egress.request(
            "POST",
            parcel.target.url,
            headers=headers,
            body=parcel.body,
            max_redirects=0,
            timeout_seconds=parcel.target.timeout_seconds,
            first_bytes=RESPONSE_BYTES,
        )
    except (FetchFailed, Refused) as error:
        elapsed_ms = int((time.monotonic() - started) * 1000)
        return replace(unanswered, duration_ms=elapsed_ms, error=_describe(error))
    return _answered(unanswered, response)


def _sign(parcel: Parcel, timestamp: int) -> dict[str, str]:
    target, event_id = parcel.target, f"evt_{parcel.event_id.hex}"
    return {
        **target.headers,
        # The start of the answer is kept as it comes, so it had better not be packed.
        "Accept-Encoding": "identity",
        **request_headers(
            delivery_id=parcel.delivery_id,
            event_id=event_id,
            event_type=parcel.event_type,
            signature=signature_header(parcel.body, secrets=target.secrets, timestamp=timestamp),
        ),
        **standard_headers(event_id, parcel.body, target.secrets, timestamp),
    }


def _describe(error: Exception) -> str:
    category = getattr(error, "category", None) or getattr(error, "code", "")
    return _storable(f"{category}: {error}")[:255]


def _answered(unanswered: Outcome, response: Response) -> Outcome:
    return replace(
        unanswered,
        http_status=response.status,
        duration_ms=int(response.elapsed_ms),
        response_headers=_kept(response.headers),
        response_body=_storable(response.body.decode(errors="replace")),
        retry_after=response.headers.get("retry-after", ""),
        error="" if response.status // 100 == 2 else f"answered {response.status}",
    )


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Enough of the headers to see who answered; cookies are nobody's business."""
    shown = [(name, value) for name, value in headers.items() if name.lower() != "set-cookie"]
    return {
        _storable(name)[:RESPONSE_HEADER_CHARS]: _storable(value)[:RESPONSE_HEADER_CHARS]
        for name, value in shown[:RESPONSE_HEADERS]
    }


def _storable(text: str) -> str:
    return text.replace("\0", "")


class Sender:
    """Sends in its own thread, so that the caller's thread keeps the database to itself."""

    def __init__(self, *, connections: int) -> None:
        self.in_flight: Counter[uuid.UUID] = Counter()
        self._done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._egress = Egress(connections=connections)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._egress.__aenter__(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, parcels: list[Parcel]) -> None:
        self.in_flight.update(parcel.target.id for parcel in parcels)
        self._loop.call_soon_threadsafe(self._start, parcels)

    def collect(self, *, wait_seconds: float, limit: int) -> list[Outcome]:
        """Up to ``limit`` outcomes; after the wait, those there are."""
        deadline = time.monotonic() + wait_seconds
        limit = min(limit, self.in_flight.total())
        outcomes = list(self._arriving(deadline, limit))
        self.in_flight.subtract(outcome.parcel.target.id for outcome in outcomes)
        self.in_flight = +self.in_flight
        return outcomes

    def _arriving(self, deadline: float, limit: int) -> Iterable[Outcome]:
        for _ in range(limit):
            try:
                yield self._done.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return

    def _start(self, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            task = self._loop.create_task(send(self._egress, parcel))
            self._tasks.add(task)
            task.add_done_callback(partial(self._finish, parcel))

    def _finish(self, parcel: Parcel, task: asyncio.Task[Outcome]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        # Our own mistake must not look like an outcome still to come.
        self._done.put(
            Outcome(parcel, timezone.now(), error=f"internal: {type(error).__name__}")
            if error
            else task.result()
        )

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._egress.__aexit__(None, None, None)
