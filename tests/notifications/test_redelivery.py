from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Invalid, InvalidState
from notifications.delivery import deliver_due
from notifications.models import Delivery
from notifications.redelivery import recover
from tests.factories.notifications import DeliveryFactory, EndpointFactory, EventFactory
from tests.notifications.receiver import Receiver, always, fine
from tests.notifications.sending_tools import names, tell

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)


def test_recovering_sends_what_was_not_accepted_and_what_was_never_meant_to_be_sent(
    receiver: Receiver,
) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    lost, done, waiting = (EventFactory.create(client=endpoint.client) for _ in range(3))
    DeliveryFactory.create(endpoint=endpoint, event=lost, status="exhausted", attempt_number=8)
    DeliveryFactory.create(endpoint=endpoint, event=done, status="success")
    DeliveryFactory.create(
        endpoint=endpoint, event=waiting, status="retrying", next_retry_at=timezone.now() + HOUR
    )
    unheard = EventFactory.create(client=endpoint.client)
    assert recover(endpoint, since=timezone.now() - HOUR, actor=SYSTEM) == 3
    assert deliver_due() == 3
    wanted = {event.public_id for event in (lost, waiting, unheard)}
    assert set(names(receiver.got)) == wanted
    entry = AuditEntry.objects.get(verb="recover")
    assert entry.after["deliveries"] == 3


def test_tries_are_shown_in_the_order_in_which_they_were_made(
    receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_RETRY_SECONDS = [0]
    receiver.answer = always(500)
    endpoint = EndpointFactory.create(url=receiver.url)
    tell(endpoint.client)
    deliver_due()
    deliver_due()
    recover(endpoint, since=timezone.now() - HOUR, actor=SYSTEM)
    receiver.answer = fine
    deliver_due()
    attempts = Delivery.objects.get().attempts.all()
    assert [attempt.status_code for attempt in attempts] == [500, 500, 200]


def test_only_the_range_and_what_the_endpoint_listens_to_is_recovered() -> None:
    website = uuid.uuid4()
    endpoint = EndpointFactory.create(events=["product.*"], website_id=website)
    now = timezone.now()
    mine = {"client": endpoint.client, "website_id": website}
    wanted = EventFactory.create(**mine, created_at=now - HOUR)
    EventFactory.create(**mine, created_at=now - 3 * HOUR)
    EventFactory.create(**mine, created_at=now - dt.timedelta(minutes=5))
    EventFactory.create(**mine, created_at=now - HOUR, type="website.failed")
    EventFactory.create(client=endpoint.client, created_at=now - HOUR)
    EventFactory.create(website_id=website, created_at=now - HOUR)
    count = recover(endpoint, since=now - 2 * HOUR, until=now - HOUR / 2, actor=SYSTEM)
    assert count == 1
    assert Delivery.objects.get().event == wanted


def test_what_is_under_way_is_left_to_itself() -> None:
    endpoint = EndpointFactory.create()
    tell(endpoint.client)
    Delivery.objects.update(leased_until=timezone.now() + HOUR)
    assert recover(endpoint, since=timezone.now() - HOUR, actor=SYSTEM) == 0


def test_a_range_that_makes_no_sense_and_a_disabled_endpoint_are_refused() -> None:
    endpoint = EndpointFactory.create()
    now = timezone.now()
    with pytest.raises(Invalid):
        recover(endpoint, since=now, until=now - HOUR, actor=SYSTEM)
    with pytest.raises(Invalid, match="30 days"):
        recover(endpoint, since=now - 31 * 24 * HOUR, actor=SYSTEM)
    off = EndpointFactory.create(disabled=True)
    with pytest.raises(InvalidState):
        recover(off, since=now - HOUR, actor=SYSTEM)
    assert not AuditEntry.objects.exists()
