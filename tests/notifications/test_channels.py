from __future__ import annotations

import asyncio
import datetime as dt
import json
import socket
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from aiohttp import web
from django.db import connection
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Invalid, InvalidState, Refused, UrlBlocked, UrlInvalid
from notifications import channels, messengers, notices, wording
from notifications.endpoints import disable_endpoint
from notifications.models import Channel, Event, Notice
from notifications.timing import due_at
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.notifications import ChannelFactory, EndpointFactory
from tests.notifications.receiver import Got, Receiver, always
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


def berlin(text: str, fold: int = 0) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


@pytest.mark.parametrize(
    ("digest", "quiet", "now", "due"),
    [
        # Summer time ends on 25 October 2026: what clocks show from 2 to 3 comes twice.
        ("hourly", None, berlin("2026-10-25T02:20"), berlin("2026-10-25T02:00", fold=1)),
        (
            "immediate",
            ("22:00", "02:30"),
            berlin("2026-10-25T02:15", 1),
            berlin("2026-10-25T02:30", 1),
        ),
        ("daily", None, berlin("2026-10-24T12:00"), berlin("2026-10-25T08:00")),
        # It begins on 29 March 2026: there is no time between 2 and 3.
        ("hourly", None, berlin("2026-03-29T01:20"), berlin("2026-03-29T03:00")),
        ("immediate", ("22:00", "07:00"), berlin("2026-03-28T23:00"), berlin("2026-03-29T07:00")),
        ("daily", None, berlin("2026-03-28T12:00"), berlin("2026-03-29T08:00")),
    ],
)
def test_a_change_of_the_clocks_moves_nothing_into_the_quiet_hours(
    digest: str, quiet: tuple[str, str] | None, now: dt.datetime, due: dt.datetime
) -> None:
    start, end = (dt.time.fromisoformat(at) for at in quiet) if quiet else (None, None)
    channel = Channel(digest=digest, quiet_from=start, quiet_until=end)
    found = due_at(channel, now, BERLIN)
    assert found.astimezone(dt.UTC) == due.astimezone(dt.UTC)


def test_what_failed_before_the_quiet_hours_is_not_tried_again_in_them(
    receiver: Receiver, room: str
) -> None:
    now = timezone.now().astimezone(BERLIN)
    channel = ChannelFactory.create(url=room, client__timezone="Europe/Berlin")
    tell(channel.client)
    Channel.objects.update(
        quiet_from=(now - dt.timedelta(hours=1)).time(),
        quiet_until=(now + dt.timedelta(hours=1)).time(),
    )
    assert notices.send_due() == 0
    assert receiver.got == []
    notice = Notice.objects.get()
    assert notice.status == "pending"
    assert notice.due_at > now + dt.timedelta(minutes=59)
    channel.refresh_from_db()
    assert channel.leased_until is None


def test_a_service_that_answers_drop_by_drop_is_hung_up_on(
    receiver: Receiver, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_got: Got) -> web.Response:
        async def drops() -> object:
            while True:
                yield b"."
                await asyncio.sleep(0.1)

        return web.Response(body=drops())

    receiver.answer = answer
    monkeypatch.setattr(messengers, "TOTAL_SECONDS", 1.0)
    with pytest.raises(messengers.NotSent):
        messengers.send(room, title="t", body="b")


def test_a_channel_that_breaks_the_sender_does_not_keep_others_from_being_told(
    receiver: Receiver, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, well = ChannelFactory.create(url=room), ChannelFactory.create(url=room)
    tell(broken.client)
    tell(well.client)
    Event.objects.filter(client=broken.client).update(body="no JSON")
    with pytest.raises(orjson.JSONDecodeError):
        notices.send_due()
    assert notices.send_due() == 1
    assert Notice.objects.get(channel=well).status == "sent"


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


def test_a_channel_that_is_switched_on_again_tells_no_old_news(
    receiver: Receiver, room: str
) -> None:
    channel = ChannelFactory.create(url=room)
    tell(channel.client, 2)
    channels.update_channel(channel, actor=SYSTEM, is_active=False)
    old = Notice.objects.order_by("created_at").first()
    assert old
    Notice.objects.filter(pk=old.pk).update(created_at=timezone.now() - dt.timedelta(days=4))
    channels.update_channel(channel, actor=SYSTEM, is_active=True)
    assert notices.send_due() == 1
    assert set(Notice.objects.values_list("pk", "status")) >= {(old.pk, "failed")}
    assert Notice.objects.filter(status="sent").count() == 1


def test_two_senders_do_not_send_the_same_channel() -> None:
    channel = ChannelFactory.create()
    tell(channel.client)
    Channel.objects.update(leased_until=timezone.now() + dt.timedelta(minutes=1))
    assert not notices.has_due()
    assert notices.send_due() == 0


def test_what_comes_of_a_lease_that_is_over_is_written_nowhere(
    receiver: Receiver, room: str
) -> None:
    channel = ChannelFactory.create(url=room)
    tell(channel.client)
    slow = notices._lease()
    assert slow
    Channel.objects.update(leased_until=timezone.now())
    assert notices.send_due() == 1
    told = Notice.objects.values().get()
    receiver.answer = always(500)
    notices._deliver(slow, list(Notice.objects.all()), "t", "b")
    assert Notice.objects.values().get() == told
    Channel.objects.update(leased_until=timezone.now() + dt.timedelta(minutes=1))
    notices._send_to(slow)
    channel.refresh_from_db()
    assert channel.leased_until
    assert channel.last_error == ""
    assert len(receiver.got) == 1


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


WORKFLOW = f"workflows://{{}}/{'6' * 32}/{'s' * 40}"
ROOMS = [
    WORKFLOW.format("93.184.216.34"),
    f"discord://{'1' * 18}/{'a' * 68}",
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
    "tgram://123456789:abcdefg_hijklmnop/12315544",
    "ntfys://93.184.216.34/topic",
    "mailtos://user:pass@example.com",
]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.partition(":")[0])
@pytest.mark.parametrize(
    "name",
    ["template", "Template", "%74emplate", "attach", "pgp", "pgppub", "wkd", "wait", "store"],
)
def test_a_url_that_makes_the_server_read_its_files_is_refused(
    room: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messengers, "check_target", lambda url, policy: url)
    for given in (f"{room}?{name}=/etc/hostname", f"{room}?format=text&{name}=/etc/hostname"):
        with pytest.raises(UrlInvalid, match="Leave out the parameter"):
            messengers.checked_url(given)
    assert messengers.checked_url(f"{room}?format=text") == f"{room}?format=text"


def test_the_host_of_a_workflow_is_checked_when_it_is_saved() -> None:
    with pytest.raises(UrlBlocked):
        messengers.checked_url(WORKFLOW.format("10.0.0.1:443"))


def test_a_service_that_opens_a_file_all_the_same_gets_nothing_of_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("canary-4711")
    with messengers._inside_the_guard(messengers._Call(messengers._policy())):
        for refused in (secret.read_text, lambda: secret.write_text("x")):
            with pytest.raises(PermissionError):
                refused()
    assert secret.read_text() == "canary-4711"


def test_a_message_does_not_go_through_the_proxy_of_the_server(
    receiver: Receiver, room: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Receiver() as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{proxy.port}")
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login us password canary-4711")
        monkeypatch.setenv("NETRC", str(netrc))
        messengers.send(room, title="t", body="b")
        assert proxy.got == []
    [got] = receiver.got
    assert "authorization" not in {name.lower() for name in got.headers}


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
