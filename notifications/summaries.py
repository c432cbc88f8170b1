"""The day before in figures: one ``summary.daily`` for each client, in its own morning."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.models import Client
from notifications.events import EventDraft, publish
from notifications.models import Event
from notifications.timing import zone_of

log = logging.getLogger(__name__)

TYPE = "summary.daily"
# From the first of these hours on; a beat that was away makes up for it until the second.
HOURS = range(6, 22)


def publish_due() -> int:
    """Answers how many summaries were published; one that is out already is not made again."""
    due = {draft.id: draft for draft in _due(timezone.now())}
    known = set(Event.objects.filter(pk__in=list(due)).values_list("pk", flat=True))
    fresh = [draft for pk, draft in due.items() if pk not in known]
    failed = [error for draft in fresh if (error := _tried(draft))]
    if failed:
        raise ExceptionGroup("Some clients have no summary", failed)
    return len(fresh)


def _tried(draft: EventDraft) -> Exception | None:
    """One client whose figures cannot be made must not keep the others waiting."""
    try:
        _publish(draft)
    except Exception as error:
        # Raised again when all had their turn.
        log.exception("No summary for client %s", draft.client_id)
        return error
    return None


def _publish(draft: EventDraft) -> None:
    start = draft.data["object"]["from"]
    figures = import_string(settings.SUMMARY_SOURCE)(
        draft.client_id, start, draft.data["object"]["until"]
    )
    draft.data["object"] |= figures
    with transaction.atomic():
        publish([draft])


def _due(now: dt.datetime) -> Iterator[EventDraft]:
    clients = Client.objects.filter(is_active=True).values_list("pk", "timezone")
    for client_id, zone_name in clients.iterator():
        local = now.astimezone(zone_of(zone_name))
        if local.hour in HOURS:
            yield _draft(client_id, local, zone_name)


def _draft(client_id: uuid.UUID, local: dt.datetime, zone_name: str) -> EventDraft:
    until = local.replace(hour=0, minute=0, second=0, microsecond=0)
    day = until.date() - dt.timedelta(days=1)
    start = dt.datetime.combine(day, dt.time(), tzinfo=local.tzinfo)
    about: dict[str, Any] = {
        "date": day.isoformat(),
        "timezone": zone_name,
        "from": start.astimezone(dt.UTC),
        "until": until.astimezone(dt.UTC),
    }
    return EventDraft(
        client_id=client_id,
        type=TYPE,
        cause=uuid.uuid5(client_id, day.isoformat()),
        data={"object": about},
        occurred_at=timezone.now(),
    )
