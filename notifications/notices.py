"""Notices: what channels are told, gathered per channel, sent and written down.

Like webhooks they are rows first: a sender that dies leaves a lease that ends.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from common.crypto import Undecryptable
from common.errors import Refused
from notifications import messengers, wording
from notifications.events import CLIENT_SECRETS
from notifications.models import Channel, Notice
from notifications.timing import after_quiet, zone_of

BATCH = 500
# Longer than the few messages of one channel may take, see messengers.TOTAL_SECONDS.
LEASE = dt.timedelta(seconds=180)
# More than this at once become one message: nobody reads fifty.
SINGLE = 3
MAX_TRIES = 5
# The notices it tells, its title and its text.
Message = tuple[Sequence[Notice], str, str]


def has_due() -> bool:
    return _due_channels().exists()


def send_due(max_seconds: float = 60) -> int:
    """Send what is due, channel by channel; answers how many messages were tried."""
    deadline, messages = time.monotonic() + max_seconds, 0
    while time.monotonic() < deadline and (channel := _lease()):
        messages += _send_to(channel)
    return messages


def _due_channels() -> QuerySet[Channel]:
    waiting = Notice.objects.filter(
        channel=OuterRef("pk"), status=Notice.Status.PENDING, due_at__lte=Now()
    )
    free = Q(leased_until=None) | Q(leased_until__lte=Now())
    # The address is read where it is used: one that no key opens must stop nobody else.
    rows = Channel.objects.select_related("client").defer("url", *CLIENT_SECRETS)
    return rows.filter(free, Exists(waiting), is_active=True)


@transaction.atomic
def _lease() -> Channel | None:
    """One at a time: a lease taken early would end while others are still being told."""
    rows = _due_channels().select_for_update(skip_locked=True, of=("self",))
    channel = rows.order_by("pk").first()
    if channel:
        channel.fence += 1
        Channel.objects.filter(pk=channel.pk).update(
            leased_until=Now() + LEASE, fence=channel.fence
        )
    return channel


def _send_to(channel: Channel) -> int:
    now = timezone.now()
    due = Notice.objects.filter(channel=channel, status=Notice.Status.PENDING, due_at__lte=Now())
    messages: list[Message] = []
    woken = after_quiet(channel, now, zone_of(channel.client.timezone))
    if woken > now:
        # A try before failed, or the sender comes late, or the hours were changed meanwhile.
        due.filter(channel__in=_mine(channel)).update(due_at=woken)
    else:
        notices = list(due.select_related("event").order_by("event__sequence")[:BATCH])
        messages = _messages(channel, notices)
    for group, title, body in messages:
        _deliver(channel, group, title, body)
    _mine(channel).update(leased_until=None)
    return len(messages)


def _mine(channel: Channel) -> QuerySet[Channel]:
    """The channel while nobody else has leased it."""
    return Channel.objects.filter(pk=channel.pk, fence=channel.fence)


def _messages(channel: Channel, notices: Sequence[Notice]) -> list[Message]:
    at_once = channel.digest == Channel.Digest.IMMEDIATE and len(notices) <= SINGLE
    if at_once or len(notices) == 1:
        return [([notice], *wording.message(channel, notice.event)) for notice in notices]
    return [(notices, *wording.digest(channel, [notice.event for notice in notices]))]


def _deliver(channel: Channel, notices: Sequence[Notice], title: str, body: str) -> None:
    # Nor what was sent or given up meanwhile by one who came after.
    rows = Notice.objects.filter(
        pk__in=[notice.pk for notice in notices],
        status=Notice.Status.PENDING,
        channel__in=_mine(channel),
    )
    if not _mine(channel).filter(leased_until__gt=Now()).exists():
        return
    try:
        messengers.send(channel.url, title=title, body=body)
    except (messengers.NotSent, Refused, Undecryptable) as error:
        _fail(rows, notices, str(error)[:255])
        _mine(channel).update(last_error=str(error)[:255])
    else:
        now = timezone.now()
        rows.update(status=Notice.Status.SENT, sent_at=now, error="", tries=F("tries") + 1)
        _mine(channel).update(last_error="", last_sent_at=now)


def _fail(rows: QuerySet[Notice], notices: Sequence[Notice], error: str) -> None:
    tries = max(notice.tries for notice in notices) + 1
    pauses = settings.WEBHOOK_RETRY_SECONDS
    if tries >= min(MAX_TRIES, len(pauses) + 1):
        rows.update(status=Notice.Status.FAILED, tries=tries, error=error)
        return
    due_at = timezone.now() + dt.timedelta(seconds=pauses[tries - 1])
    rows.update(due_at=due_at, tries=tries, error=error)
