"""Notices: what channels are told, gathered per channel, sent and written down.

Like webhooks they are rows first: a sender that dies leaves a lease that ends.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from common.errors import Refused
from notifications import messengers, wording
from notifications.models import Channel, Notice

BATCH = 500
# Longer than a handful of messages may take, each with 5 s to connect and 10 s to answer.
LEASE = dt.timedelta(seconds=180)
# More than this at once become one message: nobody reads fifty.
SINGLE = 3
MAX_TRIES = 5
CHANNELS = 20


def has_due() -> bool:
    return _due_channels(timezone.now()).exists()


def send_due() -> int:
    """Send what is due, channel by channel; answers how many messages were tried."""
    return sum(_send_to(channel) for channel in _lease())


def _due_channels(now: dt.datetime) -> QuerySet[Channel]:
    waiting = Notice.objects.filter(
        channel=OuterRef("pk"), status=Notice.Status.PENDING, due_at__lte=now
    )
    free = Q(leased_until=None) | Q(leased_until__lte=now)
    return Channel.objects.filter(free, Exists(waiting), is_active=True)


@transaction.atomic
def _lease() -> list[Channel]:
    now = timezone.now()
    rows = _due_channels(now).select_for_update(skip_locked=True).order_by("pk")
    channels = list(rows[:CHANNELS])
    Channel.objects.filter(pk__in=[c.pk for c in channels]).update(leased_until=now + LEASE)
    return channels


def _send_to(channel: Channel) -> int:
    due = Notice.objects.filter(
        channel=channel, status=Notice.Status.PENDING, due_at__lte=timezone.now()
    )
    notices = list(due.select_related("event").order_by("event__sequence")[:BATCH])
    messages = _messages(channel, notices)
    for group, title, body in messages:
        _deliver(channel, group, title, body)
    Channel.objects.filter(pk=channel.pk).update(leased_until=None)
    return len(messages)


def _messages(
    channel: Channel, notices: Sequence[Notice]
) -> list[tuple[Sequence[Notice], str, str]]:
    at_once = channel.digest == Channel.Digest.IMMEDIATE and len(notices) <= SINGLE
    if at_once or len(notices) == 1:
        return [([notice], *wording.message(channel, notice.event)) for notice in notices]
    return [(notices, *wording.digest(channel, [notice.event for notice in notices]))]


def _deliver(channel: Channel, notices: Sequence[Notice], title: str, body: str) -> None:
    now = timezone.now()
    rows = Notice.objects.filter(pk__in=[notice.pk for notice in notices])
    mine = Channel.objects.filter(pk=channel.pk)
    try:
        messengers.send(channel.url, title=title, body=body)
    except (messengers.NotSent, Refused) as error:
        _fail(rows, notices, str(error)[:255])
        mine.update(last_error=str(error)[:255])
    else:
        rows.update(status=Notice.Status.SENT, sent_at=now, error="", tries=F("tries") + 1)
        mine.update(last_error="", last_sent_at=now)


def _fail(rows: QuerySet[Notice], notices: Sequence[Notice], error: str) -> None:
    tries = max(notice.tries for notice in notices) + 1
    pauses = settings.WEBHOOK_RETRY_SECONDS
    if tries >= min(MAX_TRIES, len(pauses) + 1):
        rows.update(status=Notice.Status.FAILED, tries=tries, error=error)
        return
    due_at = timezone.now() + dt.timedelta(seconds=pauses[tries - 1])
    rows.update(due_at=due_at, tries=tries, error=error)
