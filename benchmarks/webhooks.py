"""Deliveries from one process: claimed, signed, sent and logged, to a hundred endpoints. The
peer is a bare aiohttp client that signs and sends the same bodies and remembers nothing. Then
the same heap again beside a dead endpoint with a heap of its own, which must slow nobody."""

from __future__ import annotations

import asyncio
import hmac
import statistics
import time
import uuid
from collections.abc import Sequence

import aiohttp
import uvloop
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Client
from accounts.webhook_secrets import new_secret
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


def measure(*, quick: bool) -> list[Figure]:
    each, rounds = (30, 3) if quick else (100, 5)
    settings.WEBHOOK_ALLOW_HTTP = True
    rates: list[float] = []
    bare: list[float] = []
    alone: list[float] = []
    beside: list[float] = []
    with BulkReceiver() as receiver:
        client = listeners(receiver.url)
        run(receiver, client, each)
        for turn in range(rounds):
            bare.append(send_bare(receiver.url, bodies(client, each)))
            receiver.times()
            # The heap with and the heap without the dead endpoint take turns to be first.
            pair = [(alone, False), (beside, True)]
            for waits, with_dead in pair if turn % 2 else reversed(pair):
                rate, p95 = run(receiver, client, each, with_dead=with_dead)
                waits.append(p95)
                if not with_dead:
                    rates.append(rate)
    return figures(rates, bare, alone, beside)


def figures(
    rates: Sequence[float], bare: Sequence[float], alone: Sequence[float], beside: Sequence[float]
) -> list[Figure]:
    return [
        figure(
            f"signed, logged deliveries to {ENDPOINTS} endpoints",
            rates,
            "deliveries/s",
            peer=f"goal {GOAL_PER_SECOND}",
            against=GOAL_PER_SECOND,
        ),
        figure(
            "same, of the bare sender",
            rates,
            "deliveries/s",
            peer="aiohttp and HMAC alone",
            against=statistics.median(bare),
        ),
        figure(
            "aiohttp and HMAC alone",
            bare,
            "deliveries/s",
            peer="itself",
            against=statistics.median(bare),
        ),
        figure(
            "p95 until receipt beside a dead endpoint",
            beside,
            "s",
            peer=f"without it; allowed {ALLOWED_SLOWDOWN}",
            against=statistics.median(alone),
        ),
    ]


def listeners(url: str) -> Client:
    Client.objects.filter(email="bench@example.com").delete()
    client = Client.objects.create(
        name="Bench", email="bench@example.com", webhook_secret_current=new_secret()
    )
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(client=client, url=f"{url}/{n}", events=["*"], secret_current=new_secret())
        for n in range(ENDPOINTS)
    )
    WebhookEndpoint.objects.create(
        client=client, url=f"{url}{DEAD}", events=["webhook.test"], timeout_seconds=15
    )
    return client


def run(
    receiver: BulkReceiver, client: Client, each: int, *, with_dead: bool = False
) -> tuple[float, float]:
    """Deliveries per second and the p95 of the time until receipt, of one heap."""
    heap(client, each, with_dead=with_dead)
    expected = each * ENDPOINTS
    well = Delivery.objects.exclude(endpoint__url__endswith=DEAD)
    assert well.count() == expected
    began, wall = time.perf_counter(), time.time()
    deliver_due(max_seconds=10)
    seconds = time.perf_counter() - began
    times = receiver.times()
    assert len(times) == expected, (len(times), expected)
    assert well.filter(status="success").count() == expected
    assert DeliveryAttempt.objects.filter(status_code=200).count() == expected
    return expected / seconds, statistics.quantiles(times, n=20)[18] - wall


def heap(client: Client, each: int, *, with_dead: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE notifications_event, notifications_delivery CASCADE")
    WebhookEndpoint.objects.update(failures_in_row=0, failing_since=None, resting_until=None)
    kinds = ["product.price_changed"] * each + ["webhook.test"] * (DEAD_HEAP if with_dead else 0)
    with transaction.atomic():
        publish([draft(client, kind) for kind in reversed(kinds)])
    Delivery.objects.filter(event__type="webhook.test").exclude(
        endpoint__url__endswith=DEAD
    ).delete()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE notifications_event, notifications_delivery")
        cursor.execute(
            "VACUUM ANALYZE notifications_deliveryattempt, notifications_webhookendpoint"
        )


def draft(client: Client, kind: str) -> EventDraft:
    return EventDraft(
        client_id=client.pk,
        type=kind,
        cause=uuid.uuid4(),
        data=TYPES["product.price_changed"].data,
        occurred_at=timezone.now(),
        object_id=uuid.uuid4(),
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
