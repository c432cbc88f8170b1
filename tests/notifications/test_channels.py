from __future__ import annotations

import datetime as dt
import json
import socket
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Invalid, InvalidState, Refused, UrlBlocked, UrlInvalid
from notifications import channels, messengers, notices, wording
from notifications.endpoints import disable_endpoint
from notifications.models import Channel, Notice
from notifications.timing import due_at
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.notifications import ChannelFactory, EndpointFactory
from tests.notifications.receiver import Receiver, always
from tests.notifications.sending_tools import tell

pytestmark = pytest.mark.django_db
PATH = "/api/v1/channels"
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def room(receiver: Receiver) -> str:
    return f"json://127.0.0.1:{receiver.port}/room?token=canary-4711"


def texts(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [json.loads(got.body) for got in receiver.got]
    return [(body["title"], body["message"]) for body in bodies]


def test_a_channel_is_told_in_words(receiver: Receiver, room: str) -> None:
    channel = ChannelFactory.create(url=room)
    tell(channel.client)
    assert notices.send_due() == 1
    [(title, text)] = texts(receiver)
    assert title == "Trail running shoe: price changed"
    assert "99.90 → 79.90 EUR (-20.02 %)" in text
    assert "https://shop.example/products/trail-running-shoe" in text
    assert Notice.objects.get().status == "sent"
    assert notices.send_due() == 0


def test_a_template_says_it_in_the_clients_own_words(receiver: Receiver, room: str) -> None:
    channel = ChannelFactory.create(
        url=room, title_template="{object.sku} now {change.new}", body_template="{change.none}!"
    )
    tell(channel.client)
    notices.send_due()
    assert texts(receiver) == [("TRS-42 now 79.90", "!")]


@pytest.mark.parametrize(
    "text", ["{object", "object}", "{product.name}", "{object.__class__}", "{}"]
)
def test_a_template_that_could_never_be_filled_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        wording.checked_template(text, attr="body_template")


def test_many_at_once_are_one_message(receiver: Receiver, room: str) -> None:
    channel = ChannelFactory.create(url=room)
    tell(channel.client, 60)
    assert notices.send_due() == 1
    [(title, text)] = texts(receiver)
    assert title == "60 news for Team"
    assert text.count("•") == 50
    assert "and 10 more" in text
    assert Notice.objects.filter(status="sent").count() == 60


@pytest.mark.parametrize(
    ("digest", "quiet", "now", "due"),
    [
        ("immediate", None, "12:00", "12:00"),
        ("immediate", ("22:00", "07:00"), "23:00", "07:00"),
        ("immediate", ("22:00", "07:00"), "06:59", "07:00"),
        ("immediate", ("22:00", "07:00"), "07:00", "07:00"),
        ("immediate", ("12:00", "14:00"), "13:00", "14:00"),
        ("hourly", None, "12:20", "13:00"),
        ("hourly", ("22:00", "07:30"), "21:30", "07:30"),
        ("daily", None, "12:00", "08:00"),
        ("daily", ("07:00", "09:00"), "12:00", "09:00"),
    ],
)
def test_people_are_told_when_they_want_to_be(
    digest: str, quiet: tuple[str, str] | None, now: str, due: str
) -> None:
    start, end = (dt.time.fromisoformat(at) for at in quiet) if quiet else (None, None)
    channel = Channel(digest=digest, quiet_from=start, quiet_until=end)
    moment = dt.datetime.combine(dt.date(2026, 3, 10), dt.time.fromisoformat(now), tzinfo=BERLIN)
    found = due_at(channel, moment, BERLIN).astimezone(BERLIN)
    assert found.strftime("%H:%M") == due
    assert dt.timedelta() <= found - moment < dt.timedelta(days=1)


def test_a_digest_waits_for_its_hour(receiver: Receiver, room: str) -> None:
    channel = ChannelFactory.create(url=room, digest="hourly")
    tell(channel.client, 2)
    assert notices.send_due() == 0
    Notice.objects.update(due_at=timezone.now())
    assert notices.send_due() == 1
    assert len(receiver.got) == 1


def test_only_what_a_channel_listens_to_is_told() -> None:
    channel = ChannelFactory.create(events=["website.*"])
    ChannelFactory.create(client=channel.client, is_active=False)
    tell(channel.client)
    assert not Notice.objects.exists()


def test_a_service_that_refuses_is_asked_again_and_then_given_up(
    receiver: Receiver, room: str
) -> None:
    receiver.answer = always(500)
    channel = ChannelFactory.create(url=room)
    tell(channel.client)
    for tries in range(1, notices.MAX_TRIES + 1):
        assert notices.send_due() == 1
        assert notices.send_due() == 0
        assert Notice.objects.get().tries == tries
        Notice.objects.update(due_at=timezone.now())
    assert Notice.objects.get().status == "failed"
    channel.refresh_from_db()
    assert channel.last_error
    assert "canary-4711" not in channel.last_error


def test_a_disabled_endpoint_is_told_through_the_channels(receiver: Receiver, room: str) -> None:
    channel = ChannelFactory.create(url=room, events=["webhook.*"])
    endpoint = EndpointFactory.create(client=channel.client)
    disable_endpoint(endpoint.pk, reason="The receiver answered 410 Gone.")
    notices.send_due()
    [(title, text)] = texts(receiver)
    assert title == "webhook: disabled"
    assert "410 Gone" in text


def test_two_senders_do_not_send_the_same_channel() -> None:
    channel = ChannelFactory.create()
    tell(channel.client)
    Channel.objects.update(leased_until=timezone.now() + dt.timedelta(minutes=1))
    assert not notices.has_due()
    assert notices.send_due() == 0


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("jsons://127.0.0.1/room", UrlBlocked),
        ("jsons://169.254.169.254/latest", UrlBlocked),
        ("jsons://localhost/", UrlBlocked),
        ("jsons://[::1]/", Refused),
        ("mailtos://user:pass@example.com?smtp=10.0.0.1", UrlBlocked),
        ("gotifys://192.168.1.1/token", UrlBlocked),
        ("json://93.184.216.34/", UrlInvalid),
        ("dbus://", UrlInvalid),
        ("syslog://", UrlInvalid),
        ("mqtt://93.184.216.34/topic", UrlInvalid),
        ("file:///etc/passwd", UrlInvalid),
        ("slack://", UrlInvalid),
        ("nonsense", UrlInvalid),
        ("jsons://93.184.216.34/\r\nx", UrlInvalid),
    ],
)
def test_a_service_that_may_not_be_spoken_to_is_refused(url: str, refusal: type[Exception]) -> None:
    client = ClientFactory.create()
    with pytest.raises(refusal):
        channels.create_channel(client, name="x", url=url, actor=SYSTEM)
    assert not Channel.objects.exists()


def test_a_private_address_is_not_dialled_whatever_the_service_resolves(
    receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was public when it was saved and checked; then it answers with loopback."""
    settings.EGRESS_ALLOWED_NETWORKS = []
    monkeypatch.setattr(messengers, "check_target", lambda url, policy: url)
    with pytest.raises(UrlBlocked):
        messengers.send(f"json://127.0.0.1:{receiver.port}/x", title="t", body="b")
    assert receiver.got == []
    with socket.create_connection(("127.0.0.1", receiver.port)):
        """Other sockets of this thread are free again."""


def test_the_api_makes_changes_tests_and_deletes_a_channel(receiver: Receiver, room: str) -> None:
    client = ClientFactory.create()
    api: Any = api_for(client, ["write"])
    made = api.post(PATH, {"name": "Room", "url": room, "digest": "daily"})
    assert made.status_code == 201, made.json()
    one = f"{PATH}/{made.json()['id']}"
    assert made.json()["service"] == "json"
    changed = api.patch(one, {"quiet_from": "22:00", "quiet_until": "07:00"})
    assert changed.json()["quiet_from"] == "22:00:00"
    assert api.post(f"{one}/test").json() == {"sent": True}
    assert len(receiver.got) == 1
    receiver.answer = always(500)
    failed = api.post(f"{one}/test")
    assert (failed.status_code, failed.json()["code"]) == (409, "INVALID_STATE")
    shown = [made, changed, failed, api.get(one), api.get(PATH)]
    assert not any("canary-4711" in answer.content.decode() for answer in shown)
    assert "canary-4711" not in str(list(AuditEntry.objects.values()))
    with connection.cursor() as cursor:
        cursor.execute("SELECT url FROM notifications_channel")
        assert "canary-4711" not in str(cursor.fetchall())
    assert api.delete(one).status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "x", "url": "jsons://93.184.216.34/", "digest": "weekly"},
        {"name": "x", "url": "jsons://93.184.216.34/", "quiet_from": "22:00"},
        {"name": "x", "url": "jsons://93.184.216.34/", "quiet_from": "25:00"},
        {"name": "x", "url": "jsons://93.184.216.34/", "events": ["prodcut.*"]},
        {"name": "x", "url": "jsons://93.184.216.34/", "body_template": "{boom"},
    ],
    ids=str,
)
def test_bad_input_is_refused_and_nothing_stored(body: dict[str, Any]) -> None:
    api: Any = api_for(ClientFactory.create(), ["write"])
    assert api.post(PATH, body).status_code == 400
    assert not Channel.objects.exists()


def test_a_message_that_fails_says_so() -> None:
    channel = ChannelFactory.create(url="jsons://127.0.0.1/")
    with pytest.raises((InvalidState, UrlBlocked)):
        channels.send_test(channel, actor=SYSTEM)
