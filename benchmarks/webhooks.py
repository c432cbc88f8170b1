"""Deliveries from one process: claimed, signed, sent and logged, to a hundred endpoints. The
peer is a bare aiohttp client that signs and sends the same bodies and remembers nothing. Then
the same heap again beside a dead endpoint with a heap of its own, which must slow nobody; five
events for each of many products to one endpoint, of which one at a time may be on its way; and
how long news is on its way under a crawl. CPU seconds tell more than the clock on a busy machine."""

from __future__ import annotations

import asyncio
import hmac
import statistics
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import psutil
import uvloop
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Client
from accounts.webhook_secrets import new_secret
from benchmarks import arrival
from benchmarks.figures import Figure, figure
from benchmarks.receiver import DEAD, BulkReceiver
from notifications.catalogue import TYPES
from notifications.delivery import deliver_due
from notifications.events import EventDraft, publish
from notifications.models import Delivery, DeliveryAttempt, Event, WebhookEndpoint

# What issue 6 asks of this machine.
GOAL_PER_SECOND = 2000
ALLOWED_SLOWDOWN = 1.05
ENDPOINTS = 100
DEAD_HEAP = 500
CONNECTIONS = 64
EMAIL = "bench@example.com"
EVENTS_OF_A_PRODUCT = 5
LONGEST_RUN_SECONDS = 600


@dataclass(frozen=True)
class Run:
    """What sending one heap took."""

    deliveries: int
    seconds: float
    sender_cpu: float
    database_cpu: float
    p95: float

    @property
    def rate(self) -> float:
        return self.deliveries / self.seconds


def measure(*, quick: bool) -> list[Figure]:
    each, rounds = (30, 3) if quick else (100, 5)
    settings.WEBHOOK_ALLOW_HTTP = True
    bare: list[float] = []
    alone: list[Run] = []
    beside: list[Run] = []
    with BulkReceiver() as receiver:
        client = listeners(receiver.url)
        run(receiver, client, each)
        for turn in range(rounds):
            bare.append(send_bare(receiver.url, bodies(client, each)))
            receiver.times()
            # The heap with and the heap without the dead endpoint take turns to be first.
            pair = [(alone, False), (beside, True)]
            for runs, with_dead in pair if turn % 2 else reversed(pair):
                runs.append(run(receiver, client, each, with_dead=with_dead))
        single = one_listener(receiver.url)
        deep = [run_deep(receiver, single, products=each * 20) for _ in range(rounds)]
        Client.objects.filter(email=EMAIL).delete()
    return [*figures(alone, bare, beside, deep), *arrival.measure(quick=quick)]


def figures(
    alone: Sequence[Run], bare: Sequence[float], beside: Sequence[Run], deep: Sequence[Run]
) -> list[Figure]:
    rates, goal = [run.rate for run in alone], f"goal {GOAL_PER_SECOND}"
    plain = statistics.median(bare)
    return [
        figure(
            f"signed, logged deliveries to {ENDPOINTS} endpoints",
            rates,
            "deliveries/s",
            peer=goal,
            against=GOAL_PER_SECOND,
        ),
        *cpu_figures("same", alone),
        figure(
            "same, of the bare sender",
            rates,
            "deliveries/s",
            peer="aiohttp and HMAC alone",
            against=plain,
        ),
        figure("aiohttp and HMAC alone", bare, "deliveries/s", peer="itself", against=plain),
        figure(
            "p95 until receipt beside a dead endpoint",
            [run.p95 for run in beside],
            "s",
            peer=f"without it; allowed {ALLOWED_SLOWDOWN}",
            against=statistics.median(run.p95 for run in alone),
        ),
        figure(
            f"{EVENTS_OF_A_PRODUCT} events per product to one endpoint",
            [run.rate for run in deep],
            "deliveries/s",
            peer=f"{ENDPOINTS} endpoints",
            against=statistics.median(rates),
        ),
        *cpu_figures("same", deep),
    ]


def cpu_figures(name: str, runs: Sequence[Run]) -> list[Figure]:
    sender = [run.deliveries / run.sender_cpu for run in runs]
    database = [run.deliveries / run.database_cpu for run in runs]
    unit, goal = "deliveries", f"goal {GOAL_PER_SECOND}"
    return [
        figure(
            f"{name}, per CPU second of the sender",
            sender,
            unit,
            peer=goal,
            against=GOAL_PER_SECOND,
        ),
        figure(
            f"{name}, per CPU second of the database",
            database,
            unit,
            peer=goal,
            against=GOAL_PER_SECOND,
        ),
    ]


def listeners(url: str) -> Client:
    Client.objects.filter(email=EMAIL).delete()
    client = Client.objects.create(name="Bench", email=EMAIL, webhook_secret_current=new_secret())
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(client=client, url=f"{url}/{n}", events=["*"], secret_current=new_secret())
        for n in range(ENDPOINTS)
    )
    WebhookEndpoint.objects.create(
        client=client, url=f"{url}{DEAD}", events=["webhook.test"], timeout_seconds=15
    )
    return client


def one_listener(url: str) -> Client:
    client = listeners(url)
    first = client.webhook_endpoints.exclude(url__endswith=DEAD).first()
    assert first
    client.webhook_endpoints.exclude(pk=first.pk).delete()
    return client


def run(receiver: BulkReceiver, client: Client, each: int, *, with_dead: bool = False) -> Run:
    """One heap: as many events as told, for a hundred endpoints."""
    heap(client, each, with_dead=with_dead)
    return send_heap(receiver, each * ENDPOINTS)


def run_deep(receiver: BulkReceiver, client: Client, *, products: int) -> Run:
    forget()
    ids = [uuid.uuid4() for _ in range(products)]
    kinds = ["product.price_changed"] * EVENTS_OF_A_PRODUCT
    with transaction.atomic():
        publish([draft(client, kind, pk) for pk in ids for kind in kinds])
    vacuum()
    return send_heap(receiver, products * EVENTS_OF_A_PRODUCT)


def send_heap(receiver: BulkReceiver, expected: int) -> Run:
    well = Delivery.objects.exclude(endpoint__url__endswith=DEAD)
    assert well.count() == expected
    began, wall = time.perf_counter(), time.time()
    sender, database = time.process_time(), database_cpu()
    deliver_due(max_seconds=LONGEST_RUN_SECONDS)
    seconds = time.perf_counter() - began
    sender, database = time.process_time() - sender, database_cpu() - database
    times = receiver.times()
    assert len(times) == expected, (len(times), expected)
    assert well.filter(status="success").count() == expected
    assert DeliveryAttempt.objects.filter(status_code=200).count() == expected
    p95 = statistics.quantiles(times, n=20)[18] - wall
    return Run(expected, seconds, sender, database, p95)


def database_cpu() -> float:
    """Of the server process that works for this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        times = psutil.Process(cursor.fetchone()[0]).cpu_times()
    return float(times.user + times.system)


def heap(client: Client, each: int, *, with_dead: bool) -> None:
    forget()
    kinds = ["product.price_changed"] * each + ["webhook.test"] * (DEAD_HEAP if with_dead else 0)
    with transaction.atomic():
        publish([draft(client, kind) for kind in reversed(kinds)])
    Delivery.objects.filter(event__type="webhook.test").exclude(
        endpoint__url__endswith=DEAD
    ).delete()
    vacuum()


def forget() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE notifications_event, notifications_delivery CASCADE")
    WebhookEndpoint.objects.update(failures_in_row=0, failing_since=None, resting_until=None)


def vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE notifications_event, notifications_delivery")
        cursor.execute(
            "VACUUM ANALYZE notifications_deliveryattempt, notifications_webhookendpoint"
        )


def draft(client: Client, kind: str, object_id: uuid.UUID | None = None) -> EventDraft:
    return EventDraft(
        client_id=client.pk,
        type=kind,
        cause=uuid.uuid4(),
        data=TYPES["product.price_changed"].data,
        occurred_at=timezone.now(),
        object_id=object_id or uuid.uuid4(),
    )


def bodies(client: Client, each: int) -> list[bytes]:
    heap(client, each, with_dead=False)
    return [body.encode() for body in Event.objects.values_list("body", flat=True)] * ENDPOINTS


def send_bare(url: str, messages: list[bytes]) -> float:
    secret = new_secret().encode()

    async def work(session: aiohttp.ClientSession, waiting: Sequence[bytes]) -> None:
        for body in waiting:
            at = int(time.time())
            mark = hmac.digest(secret, b"%d.%s" % (at, body), "sha256").hex()
            headers = {"X-Obsrv-Signature": f"t={at},v1={mark}", "Content-Type": "application/json"}
            async with session.post(url, data=body, headers=headers) as answer:
                await answer.read()

    async def run() -> None:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS)
        ) as session:
            shares = (messages[n::CONNECTIONS] for n in range(CONNECTIONS))
            await asyncio.gather(*(work(session, share) for share in shares))

    began = time.perf_counter()
    uvloop.run(run())
    return len(messages) / (time.perf_counter() - began)
