"""Receivers that misbehave: what they do to a delivery, and that it is nothing worse."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from notifications.delivery import deliver_due
from notifications.models import Delivery, DeliveryAttempt
from tests.factories.notifications import EndpointFactory
from tests.notifications.receiver import Got, Receiver, fine
from tests.notifications.sending_tools import make_due, names, tell

pytestmark = pytest.mark.django_db


def test_ten_megabytes_in_answer_are_a_success_of_which_four_kilobytes_are_kept(
    receiver: Receiver,
) -> None:
    async def answer(_got: Got) -> web.Response:
        return web.Response(body=b"x" * 10_000_000)

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    assert Delivery.objects.get().status == "success"
    assert DeliveryAttempt.objects.get().response_body == "x" * 4096


def test_an_answer_that_drips_past_the_timeout_is_a_failed_try(receiver: Receiver) -> None:
    async def answer(_got: Got) -> web.Response:
        async def drops() -> object:
            for _ in range(100):
                yield b"."
                await asyncio.sleep(0.2)

        return web.Response(body=drops())

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url, timeout_seconds=1).client)
    deliver_due()
    row = Delivery.objects.get()
    assert row.status == "retrying"
    assert row.last_error.startswith("timeout")


def test_an_answer_after_the_timeout_makes_a_second_delivery_of_the_same_id(
    receiver: Receiver,
) -> None:
    async def answer(got: Got) -> web.Response:
        await asyncio.sleep(1.3 if len(receiver.got) == 1 else 0)
        return await fine(got)

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url, timeout_seconds=1).client)
    deliver_due()
    make_due()
    deliver_due()
    assert len(receiver.got) == 2
    assert len(set(names(receiver.got))) == 1
    assert [a.error[:7] for a in DeliveryAttempt.objects.order_by("number")] == ["timeout", ""]


def test_a_packed_answer_is_not_asked_for_and_harms_nobody(receiver: Receiver) -> None:
    async def answer(got: Got) -> web.Response:
        assert got.headers["Accept-Encoding"] == "identity"
        return web.Response(body=b"\x1f\x8b broken", headers={"Content-Encoding": "gzip"})

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    assert Delivery.objects.get().status == "success"


def test_the_headers_of_an_answer_are_kept_but_for_its_cookies(receiver: Receiver) -> None:
    async def answer(_got: Got) -> web.Response:
        return web.Response(headers={"X-Trace": "abc", "Set-Cookie": "session=secret"})

    receiver.answer = answer
    tell(EndpointFactory.create(url=receiver.url).client)
    deliver_due()
    kept = DeliveryAttempt.objects.get().response_headers
    assert kept["X-Trace"] == "abc"
    assert "secret" not in str(kept)
