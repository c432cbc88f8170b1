"""Where people read news: made, changed, tested and deleted, with an audit entry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, Unpack

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from accounts.models import Client
from common.crypto import Undecryptable
from common.errors import Invalid, InvalidState, LimitReached
from notifications import messengers, wording
from notifications.endpoints import checked_events
from notifications.models import Channel, Notice

MAX_CHANNELS = 50
NEWS_AGE = dt.timedelta(days=3)
TEST_TEXT = "If you can read this, the channel works."


class Changes(TypedDict):
    """What of a channel can be changed."""

    name: NotRequired[str]
    url: NotRequired[str]
    events: NotRequired[Sequence[str]]
    digest: NotRequired[str]
    quiet_from: NotRequired[dt.time | None]
    quiet_until: NotRequired[dt.time | None]
    title_template: NotRequired[str]
    body_template: NotRequired[str]
    is_active: NotRequired[bool]


def create_channel(client: Client, *, actor: Actor, **wanted: Unpack[Changes]) -> Channel:
    channel = Channel(client=client, **_checked({"events": ["*"], **wanted}))
    _check_quiet(channel)
    with transaction.atomic():
        Client.objects.select_for_update(no_key=True).get(pk=client.pk)
        if client.channels.count() >= MAX_CHANNELS:
            raise LimitReached(f"A client has at most {MAX_CHANNELS} channels: delete one first.")
        channel.save(force_insert=True)
        audit.record(actor, "create", channel, client_id=client.pk, after=_facts(channel))
    return channel


def update_channel(channel: Channel, *, actor: Actor, **changes: Unpack[Changes]) -> Channel:
    checked = _checked(changes)
    with transaction.atomic():
        channel = Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        before, was_off = _facts(channel), not channel.is_active
        for name, value in checked.items():
            setattr(channel, name, value)
        _check_quiet(channel)
        channel.save()
        if was_off and channel.is_active:
            _drop_old_news(channel)
        after = _facts(channel)
        audit.record(
            actor, "update", channel, client_id=channel.client_id, before=before, after=after
        )
    return channel


@transaction.atomic
def delete_channel(channel: Channel, *, actor: Actor) -> None:
    """With what it was told; the events stay."""
    audit.record(actor, "delete", channel, client_id=channel.client_id, before=_facts(channel))
    channel.delete()


def send_test(channel: Channel, *, actor: Actor) -> None:
    """Send a message now; says why when the service does not take it."""
    audit.record(actor, "test", channel, client_id=channel.client_id)
    try:
        messengers.send(channel.url, title=f"Obsrv: {channel.name}", body=TEST_TEXT)
    except messengers.NotSent as error:
        raise InvalidState(f"The message was not sent: {error}.") from error


def _checked(changes: Changes) -> dict[str, Any]:
    checked: dict[str, Any] = dict(changes)
    if "url" in changes:
        checked["url"] = messengers.checked_url(changes["url"])
    if "events" in changes:
        checked["events"] = checked_events(changes["events"])
    for name in ("title_template", "body_template"):
        if name in changes:
            checked[name] = wording.checked_template(checked[name], attr=name)
    return checked


def _drop_old_news(channel: Channel) -> None:
    """What waited while it was off and is no news any more is told to nobody."""
    old = timezone.now() - NEWS_AGE
    waiting = channel.notices.filter(status=Notice.Status.PENDING, created_at__lt=old)
    waiting.update(status=Notice.Status.FAILED, error="Too old when the channel was switched on.")


def _check_quiet(channel: Channel) -> None:
    if (channel.quiet_from is None) != (channel.quiet_until is None):
        raise Invalid("Give both quiet_from and quiet_until, or neither.", attr="quiet_from")


def _facts(channel: Channel) -> dict[str, Any]:
    # Of the URL only the service: the rest of it is the key to somebody's room.
    return {
        "name": channel.name,
        "service": service_of(channel),
        "events": list(channel.events),
        "digest": channel.digest,
        "quiet": [str(at) for at in (channel.quiet_from, channel.quiet_until) if at],
        "is_active": channel.is_active,
    }


def service_of(channel: Channel) -> str:
    try:
        return str(channel.url).partition("://")[0]
    except Undecryptable:
        return "unreadable: set the URL again"
