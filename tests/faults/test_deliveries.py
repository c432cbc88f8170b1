"""Outages of receivers, death of senders and new secrets under load: nothing is lost, and
nothing arrives under two ids."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.audit import SYSTEM
from notifications.delivery import deliver_due
from notifications.endpoints import rotate_secret
from notifications.models import Delivery, DeliveryAttempt, WebhookEndpoint
from notifications.signing import BadSignature, verify
from obsrv.demo.stack import ROOT
from tests.factories.notifications import EndpointFactory
from tests.notifications.receiver import Got, Receiver
from tests.notifications.sending_tools import tell

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]
SENDER = """
import django
django.setup()
from notifications import delivery
{before}
while delivery.deliver_due():
    pass
"""
DIE_BEFORE_WRITING = "import os; delivery.record = lambda outcomes: os.kill(os.getpid(), 9)"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    with Receiver() as receiver:
        yield receiver


def start_sender(before: str = "") -> subprocess.Popen[bytes]:
    """A sender in a process of its own, on the database of this test."""
    name = connection.settings_dict["NAME"]
    database = urlsplit(django_settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": database,
        "REDIS_URL": django_settings.REDIS_URL,
        "EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8",
        "FIELD_ENCRYPTION_KEYS": ",".join(django_settings.FIELD_ENCRYPTION_KEYS),
    }
    command = [sys.executable, "-c", SENDER.format(before=before)]
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def end_leases() -> None:
    """As if their minute were over."""
    Delivery.objects.filter(leased_until__isnull=False).update(leased_until=timezone.now())


def publish(endpoint: WebhookEndpoint, objects: int, each: int) -> set[str]:
    ids: list[uuid.UUID] = []
    with transaction.atomic():
        for _ in range(objects):
            ids += tell(endpoint.client, each, uuid.uuid4())
    return {f"evt_{pk.hex}" for pk in ids}


def counted(got: list[Got]) -> Counter[str]:
    return Counter(str(json.loads(one.body)["id"]) for one in got)


def test_killed_between_sending_and_writing_it_is_sent_again_under_the_same_id(
    receiver: Receiver,
) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    wanted = publish(endpoint, objects=50, each=1)
    assert start_sender(DIE_BEFORE_WRITING).wait(60) == -signal.SIGKILL
    assert receiver.got
    assert not Delivery.objects.filter(status="success").exists()
    end_leases()
    assert start_sender().wait(60) == 0
    assert set(counted(receiver.got)) == wanted
    assert Delivery.objects.filter(status="success").count() == len(wanted)


def test_senders_killed_at_random_lose_nothing(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    wanted = publish(endpoint, objects=1000, each=3)
    for _ in range(5):
        victim = start_sender()
        before = len(receiver.got)
        deadline = time.monotonic() + 30
        while len(receiver.got) == before and time.monotonic() < deadline and victim.poll() is None:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.2))
        victim.kill()
        victim.wait()
        end_leases()
    assert start_sender().wait(120) == 0
    arrived = counted(receiver.got)
    assert set(arrived) == wanted
    assert Delivery.objects.exclude(status="success").count() == 0
    assert_in_order(receiver.got)


def assert_in_order(got: list[Got]) -> None:
    """First receipts of an object come in the order of their numbers."""
    first: dict[str, int] = {}
    for one in got:
        first.setdefault(one.body.decode(), len(first))
    owners = dict(Delivery.objects.values_list("event__body", "event__object_id"))
    last: dict[uuid.UUID | None, int] = {}
    for body in first:
        owner, sequence = owners[body], json.loads(body)["sequence"]
        assert last.get(owner, 0) < sequence
        last[owner] = sequence


@pytest.mark.timeout(600)
def test_ten_thousand_that_waited_out_an_outage_are_each_accepted_once(
    receiver: Receiver,
) -> None:
    endpoint = EndpointFactory.create(url=receiver.url.replace(str(receiver.port), "1"))
    wanted = publish(endpoint, objects=2000, each=5)
    for _ in range(12):
        WebhookEndpoint.objects.update(resting_until=timezone.now())
        deliver_due(max_seconds=2)
    # What was under way when the first failures came in, and one probe after each rest.
    assert DeliveryAttempt.objects.count() < 400
    WebhookEndpoint.objects.update(url=receiver.url, resting_until=timezone.now())
    for _ in range(10):
        if not deliver_due(max_seconds=60):
            break
    arrived = counted(receiver.got)
    assert set(arrived) == wanted
    assert set(arrived.values()) == {1}
    assert Delivery.objects.filter(status="success").count() == 10_000
    assert_in_order(receiver.got)


def test_a_secret_rotated_in_the_storm_leaves_no_receipt_unverified(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    old = endpoint.client.webhook_secret_current
    publish(endpoint, objects=3000, each=1)

    def send() -> None:
        try:
            deliver_due(max_seconds=60)
        finally:
            connections.close_all()

    thread = threading.Thread(target=send)
    thread.start()
    while len(receiver.got) < 300:
        time.sleep(0.01)
    new = rotate_secret(endpoint, 3600, SYSTEM)
    thread.join(120)
    assert len(receiver.got) == 3000
    signers = Counter(signer(got, old=old, new=new) for got in receiver.got)
    assert set(signers) == {"old", "both"}
    assert signer(receiver.got[-1], old=old, new=new) == "both"


def signer(got: Got, **secrets: str) -> str:
    header = got.headers["X-Obsrv-Signature"]
    good = [name for name, secret in secrets.items() if fits(got.body, header, secret)]
    return "both" if len(good) == 2 else "".join(good)


def fits(body: bytes, header: str, secret: str) -> bool:
    try:
        verify(body, header, secrets=[secret], now=time.time())
    except BadSignature:
        return False
    return True
