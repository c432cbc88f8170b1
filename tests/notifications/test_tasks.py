from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from notifications import tasks
from notifications.models import Delivery, DeliveryAttempt
from tests.factories.notifications import DeliveryFactory, EndpointFactory
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


def test_deliveries_are_forgotten_after_thirty_days() -> None:
    def aged(days: float, **given: object) -> Delivery:
        row: Delivery = DeliveryFactory.create(**given)
        row.attempts.create(number=1, attempted_at=timezone.now(), signature_header="t=1")
        Delivery.objects.filter(pk=row.pk).update(
            created_at=timezone.now() - dt.timedelta(days=days)
        )
        return row

    kept = [aged(29.9, status="success"), aged(31), aged(31, status="retrying")]
    aged(30.1, status="success")
    aged(40, status="exhausted")
    aged(31, endpoint__disabled=True)
    tasks.purge_deliveries()
    assert set(Delivery.objects.all()) == set(kept)
    assert DeliveryAttempt.objects.count() == len(kept)


def test_a_secret_whose_grace_is_over_is_forgotten() -> None:
    now = timezone.now()
    over = EndpointFactory.create(
        secret_previous="whsec_b2xk", secret_rotation_expires_at=now - dt.timedelta(seconds=1)
    )
    live = EndpointFactory.create(
        secret_previous="whsec_b2xk", secret_rotation_expires_at=now + dt.timedelta(hours=1)
    )
    tasks.purge_deliveries()
    over.refresh_from_db()
    live.refresh_from_db()
    assert (over.secret_previous, live.secret_previous) == ("", "whsec_b2xk")
