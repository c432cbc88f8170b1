from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from notifications import retention
from notifications.models import Delivery, DeliveryAttempt, Event, Notice
from tests.factories.notifications import (
    ChannelFactory,
    DeliveryFactory,
    EndpointFactory,
    EventFactory,
)

pytestmark = pytest.mark.django_db


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
    retention.purge_deliveries()
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
    retention.forget_expired_secrets()
    over.refresh_from_db()
    live.refresh_from_db()
    assert (over.secret_previous, live.secret_previous) == ("", "whsec_b2xk")


def test_notices_are_forgotten_after_thirty_days_unless_they_still_wait() -> None:
    channel, now = ChannelFactory.create(), timezone.now()
    off = ChannelFactory.create(is_active=False)
    rows = (
        (channel, "sent", 31),
        (channel, "pending", 31),
        (channel, "sent", 29),
        (off, "pending", 31),
        (off, "pending", 29),
    )
    for channel, status, days in rows:
        event = EventFactory.create(client=channel.client)
        row = Notice.objects.create(channel=channel, event=event, status=status, due_at=now)
        Notice.objects.filter(pk=row.pk).update(created_at=now - dt.timedelta(days=days))
    assert retention.purge_notices() == 2
    assert Notice.objects.count() == 3


def test_events_are_forgotten_after_a_year_unless_somebody_is_still_told() -> None:
    long_ago = timezone.now() - dt.timedelta(days=366)
    waiting = DeliveryFactory.create(event__created_at=long_ago).event
    young = EventFactory.create(created_at=long_ago + dt.timedelta(days=2))
    EventFactory.create(created_at=long_ago)
    assert retention.purge_events() == 1
    assert set(Event.objects.all()) == {waiting, young}
