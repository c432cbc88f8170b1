from __future__ import annotations

import asyncio
import datetime as dt
import socket
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import standardwebhooks
import stripe
from aiohttp import web
from django.db import connections, transaction
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from notifications import claims, delivery
from notifications.claims import claim, has_due
from notifications.delivery import deliver_due
from notifications.endpoints import live_secrets, rotate_secret
from notifications.models import Delivery, DeliveryAttempt, Event, WebhookEndpoint
from notifications.redelivery import redeliver
from notifications.results import record
from notifications.sending import Outcome
from tests.factories.accounts import ClientFactory
from tests.factories.notifications import DeliveryFactory, EndpointFactory, EventFactory
from tests.notifications.receiver import Got, Receiver, always, fine
from tests.notifications.sending_tools import make_due, names, tell

pytestmark = pytest.mark.django_db


def test_both_secrets_verify_what_arrives_during_a_rotation(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    old = endpoint.client.webhook_secret_current
    new = rotate_secret(endpoint, 3600, SYSTEM)
    [event_id] = tell(endpoint.client)
    assert deliver_due() == 1
    [got] = receiver.got
    for secret in (new, old):
        signature = got.headers["X-Obsrv-Signature"]
        assert stripe.WebhookSignature.verify_header(got.body.decode(), signature, secret, 300)
        assert stripe.Webhook.construct_event(got.body, signature, secret)
        assert standardwebhooks.Webhook(secret).verify(got.body, got.headers)
    assert got.body.decode() == Event.objects.get(pk=event_id).body
    assert got.headers["webhook-id"] == f"evt_{event_id.hex}"
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["User-Agent"] == "Obsrv-Webhooks/1"
    assert got.headers["X-Obsrv-Event"] == "product.price_changed"
    assert got.headers["X-Obsrv-Delivery"] == str(Delivery.objects.get().pk)


def test_after_the_grace_only_the_new_secret_signs(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    new = rotate_secret(endpoint, 0, SYSTEM)
    tell(endpoint.client)
    deliver_due()
    assert receiver.got[0].headers["X-Obsrv-Signature"].count("v1=") == 1
    endpoint.refresh_from_db()
    assert live_secrets(endpoint) == [new]


def test_a_success_is_written_down_with_what_came_back(receiver: Receiver) -> None:
    async def answer(_got: Got) -> web.Response:
        return web.Response(status=201, body=b"o\0k" + b"x" * 9000)

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    row = Delivery.objects.get()
    assert (row.status, row.attempt_number, row.last_http_status) == ("success", 1, 201)
    assert row.delivered_at
    assert row.leased_until is None
    attempt = DeliveryAttempt.objects.get()
    assert (attempt.number, attempt.status_code, attempt.error) == (1, 201, "")
    assert attempt.response_body == "ok" + "x" * 4093
    assert attempt.signature_header == receiver.got[0].headers["X-Obsrv-Signature"]


def test_a_failing_delivery_follows_the_schedule_and_is_then_given_up(
    receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_RETRY_SECONDS = [5, 300]
    receiver.answer = always(500)
    endpoint = EndpointFactory.create(url=receiver.url)
    tell(endpoint.client)
    for seconds in settings.WEBHOOK_RETRY_SECONDS:
        assert deliver_due() == 1
        row = Delivery.objects.get()
        assert row.status == Delivery.Status.RETRYING
        wait = (row.next_retry_at - timezone.now()).total_seconds()
        assert seconds * 0.9 - 1 <= wait <= seconds * 1.1
        assert deliver_due() == 0
        make_due()
    assert deliver_due() == 1
    row = Delivery.objects.get()
    assert (row.status, row.attempt_number, row.last_error) == ("exhausted", 3, "answered 500")
    assert len(set(names(receiver.got))) == 1
    assert [a.number for a in row.attempts.all()] == [1, 2, 3]
    endpoint.refresh_from_db()
    assert endpoint.failing_since
    assert endpoint.is_active


def test_a_receiver_that_is_away_is_a_failed_try(receiver: Receiver) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    tell(EndpointFactory.create(url=url).client)
    assert deliver_due() == 1
    row = Delivery.objects.get()
    assert (row.status, row.last_http_status) == ("retrying", None)
    assert row.last_error.startswith("network")


def test_too_slow_a_receiver_is_a_failed_try(receiver: Receiver) -> None:
    async def answer(got: Got) -> web.Response:
        await asyncio.sleep(3)
        return await fine(got)

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url, timeout_seconds=1).client)
    assert deliver_due() == 1
    assert Delivery.objects.get().last_error.startswith("timeout")


def test_a_receiver_may_say_when_to_come_back(receiver: Receiver) -> None:
    receiver.answer = always(429, Retry_After="600")
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    wait = (Delivery.objects.get().next_retry_at - timezone.now()).total_seconds()
    assert 590 < wait <= 600


def test_gone_disables_the_endpoint_and_tells_the_others(receiver: Receiver) -> None:
    async def answer(got: Got) -> web.Response:
        return await (always(410) if got.path == "/gone" else fine)(got)

    receiver.answer = answer
    gone = EndpointFactory.create(url=receiver.url.replace("/hooks", "/gone"))
    EndpointFactory.create(client=gone.client, url=receiver.url)
    tell(gone.client)
    deliver_due()
    gone.refresh_from_db()
    assert not gone.is_active
    assert "410" in gone.disabled_reason
    assert Delivery.objects.get(endpoint=gone).status == Delivery.Status.EXHAUSTED
    told = [got.headers["X-Obsrv-Event"] for got in receiver.got if got.path == "/hooks"]
    assert sorted(told) == ["product.price_changed", "webhook.disabled"]
    assert AuditEntry.objects.filter(verb="disable", object_id=str(gone.pk)).count() == 1


def test_gone_from_an_address_of_before_does_not_disable_the_new_one() -> None:
    endpoint = EndpointFactory.create(url="https://old.example/hooks")
    tell(endpoint.client)
    parcels = claim()
    WebhookEndpoint.objects.update(url="https://new.example/hooks")
    record([Outcome(parcel, timezone.now(), http_status=410) for parcel in parcels])
    endpoint.refresh_from_db()
    assert endpoint.is_active


def test_a_redirect_is_a_failure_and_nothing_else_is_dialled(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: set[str] = set()
    connect = asyncio.SelectorEventLoop.sock_connect

    async def watch(loop: Any, sock: Any, address: Any) -> None:
        dialled.add(address[0])
        await connect(loop, sock, address)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", watch)
    receiver.answer = always(307, Location="http://169.254.169.254/latest/meta-data/")
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    row = Delivery.objects.get()
    assert (row.status, row.last_http_status) == ("retrying", 307)
    assert len(receiver.got) == 1
    assert dialled == {"127.0.0.1"}


def test_an_address_that_became_private_is_a_failed_try(receiver: Receiver, settings: Any) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = []
    tell(EndpointFactory.create(url=receiver.url).client)
    assert deliver_due() == 1
    row = Delivery.objects.get()
    assert (row.status, row.last_http_status) == ("retrying", None)
    assert row.last_error.startswith("URL_BLOCKED")
    assert receiver.got == []


def test_a_lost_lease_writes_nothing_but_its_log_line(receiver: Receiver) -> None:
    tell(EndpointFactory.create(url=receiver.url).client)
    [late] = claim()
    Delivery.objects.update(leased_until=timezone.now() - dt.timedelta(seconds=1))
    [fresh] = claim()
    assert fresh.fence == late.fence + 1
    record([Outcome(late, timezone.now(), http_status=500, error="answered 500")])
    row = Delivery.objects.get()
    assert (row.status, row.attempt_number) == ("pending", 0)
    assert row.leased_until
    record([Outcome(fresh, timezone.now(), http_status=200)])
    row.refresh_from_db()
    assert (row.status, row.attempt_number) == ("success", 1)
    assert DeliveryAttempt.objects.count() == 2


def test_what_was_sent_but_not_written_is_sent_again_with_the_same_id(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(EndpointFactory.create(url=receiver.url).client)

    def die(_outcomes: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "record", die)
        with pytest.raises(KeyboardInterrupt):
            deliver_due()
    assert deliver_due() == 0
    Delivery.objects.update(leased_until=timezone.now() - dt.timedelta(seconds=1))
    assert deliver_due() == 1
    assert len(receiver.got) == 2
    assert len(set(names(receiver.got))) == 1
    assert Delivery.objects.get().status == Delivery.Status.SUCCESS


def test_the_lease_is_longer_than_any_timeout() -> None:
    DeliveryFactory.create(endpoint__timeout_seconds=30)
    claim()
    lease = Delivery.objects.get().leased_until
    assert lease is not None
    assert lease > timezone.now() + dt.timedelta(seconds=45)


def test_an_endpoint_deleted_meanwhile_does_not_spoil_the_batch() -> None:
    kept, gone = DeliveryFactory.create(), DeliveryFactory.create()
    parcels = claim()
    WebhookEndpoint.objects.get(pk=gone.endpoint_id).delete()
    record([Outcome(parcel, timezone.now(), http_status=200) for parcel in parcels])
    kept.refresh_from_db()
    assert kept.status == Delivery.Status.SUCCESS
    assert DeliveryAttempt.objects.count() == 1


def test_nothing_is_sent_to_a_disabled_endpoint() -> None:
    DeliveryFactory.create(endpoint=EndpointFactory.create(disabled=True))
    assert not has_due()
    assert claim() == []


def test_only_failures_for_five_days_disable_the_endpoint() -> None:
    row = DeliveryFactory.create(
        endpoint__failing_since=timezone.now() - dt.timedelta(days=5, hours=1)
    )
    for number in range(10):
        [parcel] = claim()
        assert WebhookEndpoint.objects.get(pk=row.endpoint_id).is_active, number
        record([Outcome(parcel, timezone.now(), http_status=500, error="answered 500")])
        Delivery.objects.filter(pk=row.pk).update(
            status="retrying", next_retry_at=timezone.now(), attempt_number=1
        )
    endpoint = WebhookEndpoint.objects.get(pk=row.endpoint_id)
    assert not endpoint.is_active
    assert "five days" in endpoint.disabled_reason


def test_one_success_ends_the_time_of_failing() -> None:
    row = DeliveryFactory.create(endpoint__failing_since=timezone.now() - dt.timedelta(days=9))
    [parcel] = claim()
    record([Outcome(parcel, timezone.now(), http_status=200)])
    assert WebhookEndpoint.objects.get(pk=row.endpoint_id).failing_since is None


def test_events_of_one_object_arrive_in_order(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    thing, other = uuid.uuid4(), uuid.uuid4()
    mine = tell(endpoint.client, 5, thing)
    tell(endpoint.client, 5, other)
    assert deliver_due() == 10
    arrived = [name for name in names(receiver.got) if uuid.UUID(name[4:]) in mine]
    assert arrived == [f"evt_{pk.hex}" for pk in mine]


def test_of_one_object_and_endpoint_only_one_is_under_way() -> None:
    endpoint = EndpointFactory.create()
    EndpointFactory.create(client=endpoint.client)
    first, _second = tell(endpoint.client, 2, uuid.uuid4())
    assert Counter(parcel.event_id for parcel in claim()) == {first: 2}
    assert claim() == []


@pytest.mark.parametrize(("tries", "held_back"), [(1, True), (3, True), (4, False)])
def test_a_stuck_one_holds_back_the_next_for_its_first_four_tries(
    tries: int, held_back: bool
) -> None:
    thing = uuid.uuid4()
    endpoint = EndpointFactory.create()
    event, later = (EventFactory.create(client=endpoint.client, object_id=thing) for _ in range(2))
    DeliveryFactory.create(
        endpoint=endpoint,
        event=event,
        status="retrying",
        attempt_number=tries,
        next_retry_at=timezone.now() + dt.timedelta(hours=1),
    )
    DeliveryFactory.create(endpoint=endpoint, event=later)
    assert bool(claim()) is not held_back


def test_what_waits_for_a_failed_one_follows_right_after_it(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    mine = tell(endpoint.client, 3, uuid.uuid4())
    receiver.answer = always(500)
    assert deliver_due() == 1
    assert not has_due()
    receiver.answer = fine
    make_due()
    assert deliver_due() == 3
    assert names(receiver.got) == [f"evt_{pk.hex}" for pk in (mine[0], *mine)]


@pytest.mark.parametrize("status", ["retrying", "exhausted"])
def test_what_waits_for_a_failed_one_follows_when_that_is_sent_by_hand(
    receiver: Receiver, status: str
) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    first, *rest = tell(endpoint.client, 3, uuid.uuid4())
    receiver.answer = always(500)
    deliver_due()
    receiver.answer = fine
    stuck = Delivery.objects.get(event_id=first)
    Delivery.objects.filter(pk=stuck.pk).update(status=status)
    redeliver(stuck, SYSTEM)
    assert deliver_due() == 3
    assert names(receiver.got) == [f"evt_{pk.hex}" for pk in (first, first, *rest)]


def test_an_older_one_that_is_due_goes_before_a_younger_one() -> None:
    thing, endpoint = uuid.uuid4(), EndpointFactory.create()
    event, later = (EventFactory.create(client=endpoint.client, object_id=thing) for _ in range(2))
    old = DeliveryFactory.create(
        endpoint=endpoint, event=event, status="retrying", attempt_number=6
    )
    DeliveryFactory.create(
        endpoint=endpoint, event=later, next_retry_at=timezone.now() - dt.timedelta(1)
    )
    assert [parcel.delivery_id for parcel in claim()] == [old.pk]


def test_a_failing_endpoint_gets_a_small_share_of_a_batch() -> None:
    failing = EndpointFactory.create(failing_since=timezone.now())
    well = EndpointFactory.create()
    tell(failing.client, 30)
    tell(well.client, 30)
    shares = Counter(parcel.target.id for parcel in claim(limit=20))
    assert shares[failing.pk] <= claims.FAILING_BATCH
    assert shares[well.pk] >= 15


def test_a_busy_endpoint_leaves_the_batch_to_others() -> None:
    busy, free = EndpointFactory.create(), EndpointFactory.create()
    tell(busy.client, 3)
    tell(free.client, 3)
    assert {parcel.target.id for parcel in claim(busy=[busy.pk])} == {free.pk}


def test_a_dead_endpoint_does_not_slow_others(receiver: Receiver) -> None:
    async def answer(got: Got) -> web.Response:
        if got.path == "/slow":
            await asyncio.sleep(30)
        return await fine(got)

    receiver.answer = answer
    slow = EndpointFactory.create(url=receiver.url.replace("/hooks", "/slow"), timeout_seconds=6)
    tell(slow.client, 150)
    well = EndpointFactory.create(url=receiver.url)
    tell(well.client, 300)
    # One slow answer outlasts the whole time: who waits for it delivers nothing else.
    deliver_due(max_seconds=5)
    assert Delivery.objects.filter(endpoint=well, status="success").count() == 300


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_deliver_each_event_once(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    with transaction.atomic():
        tell(endpoint.client, 300)
        for _ in range(20):
            tell(endpoint.client, 5, uuid.uuid4())

    def send(_worker: int) -> int:
        try:
            # A busy machine may need more than its usual time.
            return deliver_due(max_seconds=100)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        tries = list(threads.map(send, range(2)))
    assert sum(tries) == 400
    assert set(Counter(names(receiver.got)).values()) == {1}
    assert Delivery.objects.filter(status="success").count() == 400


def test_a_client_that_hears_nothing_costs_nothing() -> None:
    tell(ClientFactory.create())
    assert not has_due()
    assert deliver_due() == 0
