"""What befalls a host, as news for the clients that watch it."""

from __future__ import annotations

import uuid

from django.db import transaction

from crawling.breaker import CircuitOpened
from monitoring.health import watched_on
from notifications.events import EventDraft, publish


@transaction.atomic
def tell_circuit_opened(news: CircuitOpened) -> None:
    watching = watched_on(news.host).order_by("client_id").values_list("client_id", flat=True)
    publish([_draft(news, client_id) for client_id in watching.distinct()])


def _draft(news: CircuitOpened, client_id: uuid.UUID) -> EventDraft:
    return EventDraft(
        client_id=client_id,
        type="domain.circuit_opened",
        cause=uuid.uuid5(client_id, f"{news.host} {news.opened_at.isoformat()}"),
        occurred_at=news.opened_at,
        data={
            "object": {
                "host": news.host,
                "failures": news.failures,
                "next_try_at": news.next_try_at,
            }
        },
    )
