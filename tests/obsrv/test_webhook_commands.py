"""What a developer of a receiver runs: a listener and a judge."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from io import StringIO

import pytest
from aiohttp import web
from django.core.management import CommandError, call_command

from accounts.webhook_secrets import new_secret
from notifications.conformance import probes
from notifications.signing import BadSignature, verify
from tests.notifications.receiver import Got, Receiver, fine

SECRET = new_secret()


def check(receiver: Receiver) -> dict[str, bool]:
    return grades_of(receiver.url)


def grades_of(url: str) -> dict[str, bool]:
    out = StringIO()
    with contextlib.suppress(CommandError):
        call_command("conformance", url, secret=SECRET, json=True, stdout=out)
    return {grade["name"]: grade["passed"] for grade in json.loads(out.getvalue())["grades"]}


async def careful(got: Got) -> web.Response:
    try:
        verify(
            got.body, got.headers.get("X-Obsrv-Signature", ""), secrets=[SECRET], now=time.time()
        )
    except BadSignature:
        return web.Response(status=401)
    return web.Response()


def test_a_careful_receiver_passes_everything() -> None:
    with Receiver(answer=careful) as receiver:
        grades = check(receiver)
        assert all(grades.values())
        call_command("conformance", receiver.url, secret=SECRET, stdout=StringIO())
    assert {"good", "stale", "wrong secret", "duplicate"} <= set(grades)


def test_a_receiver_that_takes_anything_fails_what_it_should_refuse() -> None:
    with Receiver(answer=fine) as receiver:
        grades = check(receiver)
        with pytest.raises(CommandError, match="of 8 passed"):
            call_command("conformance", receiver.url, secret=SECRET, stdout=StringIO())
    failed = {name for name, passed in grades.items() if not passed}
    assert failed == {"wrong secret", "changed body", "no signature", "stale", "from the future"}


def test_a_receiver_that_refuses_duplicates_or_only_reads_the_first_signature_fails() -> None:
    seen: set[str] = set()

    async def picky(got: Got) -> web.Response:
        first = ",".join(got.headers.get("X-Obsrv-Signature", "").split(",")[:2])
        known = got.headers["webhook-id"] in seen
        answer = await careful(Got(got.path, {**got.headers, "X-Obsrv-Signature": first}, got.body))
        if answer.status == 200:
            seen.add(got.headers["webhook-id"])
        return web.Response(status=409) if known else answer

    with Receiver(answer=picky) as receiver:
        grades = check(receiver)
    assert not grades["duplicate"]
    assert not grades["rotated: the known secret signs second"]
    assert grades["good"]


def test_nobody_listening_is_told_and_is_no_pass() -> None:
    with Receiver() as receiver:
        url = receiver.url
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("conformance", url, secret=SECRET, stdout=out)
    assert "passed" not in out.getvalue()


def test_a_secret_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="whsec_"):
        call_command("conformance", "http://127.0.0.1:1/", secret="hello")


def test_listening_shows_what_came_and_whether_it_verifies(unused_port: int) -> None:
    out, problems = StringIO(), []

    def listen() -> None:
        try:
            call_command(
                "listen", secret=[SECRET], port=unused_port, count=3, json=True, stdout=out
            )
        except CommandError as error:
            problems.append(str(error))

    thread = threading.Thread(target=listen)
    thread.start()
    by_name = {probe.name: probe for probe in probes(SECRET)}
    for name in ("good", "duplicate", "wrong secret"):
        post(unused_port, by_name[name].body, by_name[name].headers)
    thread.join(20)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["verified"] for line in lines] == [True, True, False]
    assert [line["times_seen"] for line in lines] == [1, 2, 3]
    assert lines[0]["event"]["type"] == "webhook.test"
    assert problems == ["1 deliveries did not verify."]


def test_the_listener_passes_the_check_of_receivers(unused_port: int) -> None:
    graded: list[dict[str, bool]] = []

    def judge() -> None:
        post(unused_port, *good())
        graded.append(grades_of(f"http://127.0.0.1:{unused_port}/hooks"))

    def good() -> tuple[bytes, dict[str, str]]:
        probe = next(probe for probe in probes(SECRET) if probe.name == "good")
        return probe.body, probe.headers

    thread = threading.Thread(target=judge)
    thread.start()
    with pytest.raises(CommandError, match="5 deliveries did not verify"):
        call_command(
            "listen", secret=[SECRET], port=unused_port, count=9, json=True, stdout=StringIO()
        )
    thread.join(20)
    assert all(graded[0].values()), graded


def post(port: int, body: bytes, headers: dict[str, str]) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, headers)
    for _ in range(100):
        try:
            urllib.request.urlopen(request).close()
            return
        except urllib.error.HTTPError as refused:
            refused.close()
            return
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError("nobody listens")


@pytest.fixture
def unused_port() -> int:
    with Receiver() as receiver:
        return receiver.port
