from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from notifications import tasks
from notifications.models import Delivery
from tests.factories.notifications import DeliveryFactory
from tests.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(tasks, "wake", calls.append)
    return calls


def test_the_sweep_wakes_the_sender_only_when_something_is_due(woken: list[str]) -> None:
    tasks.sweep_deliveries()
    DeliveryFactory.create(next_retry_at=timezone.now() + dt.timedelta(minutes=1))
    DeliveryFactory.create(status="success")
    tasks.sweep_deliveries()
    assert woken == []
    DeliveryFactory.create()
    tasks.sweep_deliveries()
    assert woken == ["notifications.tasks.deliver_due"]


def test_the_sender_is_not_woken_again_when_all_is_sent(
    woken: list[str], receiver: Receiver
) -> None:
    DeliveryFactory.create(endpoint__url=receiver.url)
    tasks.deliver_due()
    assert len(receiver.got) == 1
    assert woken == []


def test_what_is_held_back_does_not_keep_the_queue_spinning(woken: list[str]) -> None:
    row = DeliveryFactory.create(event__object_id="0195b0e3-11aa-7d02-8a3f-5a4f0f6f2d10")
    row.event.refresh_from_db()
    Delivery.objects.filter(pk=row.pk).update(
        status="retrying", attempt_number=1, next_retry_at=timezone.now() + dt.timedelta(hours=1)
    )
    DeliveryFactory.create(
        endpoint=row.endpoint,
        event__object_id=row.event.object_id,
        event__client=row.endpoint.client,
    )
    tasks.deliver_due()
    assert woken == []
