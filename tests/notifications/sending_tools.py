"""What several tests of sending need."""

from __future__ import annotations

import datetime as dt
import json
import uuid

from django.utils import timezone

from accounts.models import Client
from notifications.catalogue import TYPES
from notifications.events import EventDraft, publish
from notifications.models import Delivery
from tests.notifications.receiver import Got


def tell(client: Client, count: int = 1, object_id: uuid.UUID | None = None) -> list[uuid.UUID]:
    return publish(
        [
            EventDraft(
                client_id=client.pk,
                type="product.price_changed",
                cause=uuid.uuid4(),
                data=TYPES["product.price_changed"].data,
                occurred_at=timezone.now(),
                object_id=object_id,
            )
            for _ in range(count)
        ]
    )


def make_due() -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    Delivery.objects.filter(status__in=Delivery.OPEN).update(next_retry_at=past)


def names(got: list[Got]) -> list[str]:
    return [json.loads(one.body)["id"] for one in got]
