"""The outbox: news is written in the transaction of what it tells about."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection, transaction
from django.utils import timezone

from common.requests import current_request_id
from common.rows import copy_in
from common.wakeups import wake_on_commit
from notifications.catalogue import API_VERSION, matches
from notifications.models import Channel, Delivery, Event, Feed, Notice, WebhookEndpoint
from notifications.timing import due_at, zone_of

NAMESPACE = uuid.UUID("6f1f7f0e-5f0b-5a0e-9a52-0b5a4f5e7d31")
SENDER = "notifications.tasks.deliver_due"
NOTIFIER = "notifications.tasks.send_notices"
# Receivers may refuse more than 20 kB; a shop's text is cut rather than the news lost.
BODY_BYTES = 20_000
CLIENT_SECRETS = ("client__webhook_secret_current", "client__webhook_secret_previous")


@dataclass(frozen=True)
class EventDraft:
    """News before it has a number; the same cause and type is the same event for ever."""

    client_id: uuid.UUID
    type: str
    cause: uuid.UUID
    data: dict[str, Any]
    occurred_at: dt.datetime
    website_id: uuid.UUID | None = None
    object_id: uuid.UUID | None = None
    # Only this endpoint is told, whatever it asked for.
    endpoint_id: uuid.UUID | None = None

    @property
    def id(self) -> uuid.UUID:
        return uuid.uuid5(NAMESPACE, f"{self.cause}:{self.type}")


def publish(drafts: Sequence[EventDraft]) -> list[uuid.UUID]:
    """Write events and their deliveries; answers the ids of all drafts, old and new.

    The number of queries does not depend on the number of drafts.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("publish() belongs into a transaction")
    if not drafts:
        return []
    feeds = lock_feeds({draft.client_id for draft in drafts})
    fresh = _unwritten(drafts)
    if fresh:
        _write(fresh, feeds)
        wake_on_commit(SENDER)
    return [draft.id for draft in drafts]


def lock_feeds(client_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Feed]:
    """Who holds a client's feed is alone in giving it events or taking an endpoint away."""
    ids = sorted(client_ids)
    Feed.objects.bulk_create([Feed(client_id=pk) for pk in ids], ignore_conflicts=True)
    rows = Feed.objects.select_for_update().filter(client_id__in=ids).order_by("client_id")
    return {feed.client_id: feed for feed in rows}


def _unwritten(drafts: Sequence[EventDraft]) -> list[EventDraft]:
    wanted = {draft.id: draft for draft in drafts}
    known = set(Event.objects.filter(pk__in=list(wanted)).values_list("pk", flat=True))
    return [draft for pk, draft in wanted.items() if pk not in known]


def _write(drafts: Sequence[EventDraft], feeds: dict[uuid.UUID, Feed]) -> None:
    request_id = current_request_id()
    events = [_event(draft, feeds[draft.client_id], request_id) for draft in drafts]
    deliveries = _deliveries(drafts, events)
    copy_in(events)
    copy_in(deliveries)
    notices = _notices(drafts, feeds)
    if notices:
        Notice.objects.bulk_create(notices)
        wake_on_commit(NOTIFIER)
    Feed.objects.bulk_update(feeds.values(), ["last_sequence"])


def _event(draft: EventDraft, feed: Feed, request_id: str) -> Event:
    feed.last_sequence += 1
    return Event(
        id=draft.id,
        client_id=draft.client_id,
        type=draft.type,
        sequence=feed.last_sequence,
        body=_body(draft, feed.last_sequence),
        website_id=draft.website_id,
        object_id=draft.object_id,
        request_id=request_id,
        created_at=draft.occurred_at,
    )


def _body(draft: EventDraft, sequence: int) -> str:
    chars = BODY_BYTES
    while len((body := _envelope(draft, sequence, chars)).encode()) >= BODY_BYTES and chars > 20:
        chars //= 4
    return body


def _envelope(draft: EventDraft, sequence: int, chars: int) -> str:
    envelope = {
        "id": f"evt_{draft.id.hex}",
        "type": draft.type,
        "api_version": API_VERSION,
        "created_at": draft.occurred_at.astimezone(dt.UTC),
        "client_id": draft.client_id,
        "sequence": sequence,
        "data": _cut(draft.data, chars),
    }
    return orjson.dumps(envelope, default=str, option=orjson.OPT_UTC_Z).decode()


def _cut(value: Any, chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[: chars - 1]}…"
    if isinstance(value, dict):
        return {name: _cut(one, chars) for name, one in value.items()}
    if isinstance(value, list):
        # Short lists before short texts: an id that is cut names nothing.
        return [_cut(one, chars) for one in value[: max(1, chars // 100)]]
    return value


def _notices(drafts: Sequence[EventDraft], client_ids: Iterable[uuid.UUID]) -> list[Notice]:
    channels = Channel.objects.filter(client_id__in=list(client_ids), is_active=True)
    now = timezone.now()
    return [
        Notice(
            channel=channel,
            event_id=draft.id,
            due_at=due_at(channel, now, zone_of(channel.client.timezone)),
        )
        for channel in channels.select_related("client").defer("url", *CLIENT_SECRETS)
        for draft in drafts
        if draft.client_id == channel.client_id
        and draft.endpoint_id is None
        and matches(channel.events, draft.type)
    ]


def _deliveries(drafts: Sequence[EventDraft], events: Sequence[Event]) -> list[Delivery]:
    listeners: dict[uuid.UUID, list[WebhookEndpoint]] = {}
    client_ids = {draft.client_id for draft in drafts}
    active = WebhookEndpoint.objects.filter(client_id__in=client_ids, is_active=True)
    for endpoint in active.only("client_id", "events", "website_id"):
        listeners.setdefault(endpoint.client_id, []).append(endpoint)
    now = timezone.now()
    return [
        Delivery(
            event_id=event.pk,
            endpoint=endpoint,
            object_id=event.object_id,
            sequence=event.sequence,
            next_retry_at=now,
        )
        for draft, event in zip(drafts, events, strict=True)
        for endpoint in listeners.get(draft.client_id, [])
        if _hears(endpoint, draft)
    ]


def _hears(endpoint: WebhookEndpoint, draft: EventDraft) -> bool:
    if draft.endpoint_id is not None:
        return endpoint.pk == draft.endpoint_id
    if endpoint.website_id not in (None, draft.website_id):
        return False
    return matches(endpoint.events, draft.type)
