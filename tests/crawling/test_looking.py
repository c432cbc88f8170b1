"""A look at a page for somebody who waits: it always ends, and nobody asks beside it."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from crawling import looking
from crawling.looking import Desk
from crawling.models import Domain
from tests.crawling.work import wait_for
from tests.shop.server import ScriptedShop


def test_a_question_that_was_called_off_leaves_the_next_ones_answered() -> None:
    desk, gave_up = Desk(), threading.Event()
    answers: list[Any] = []

    async def ask() -> None:
        question = asyncio.create_task(desk.ask(answers.append, "not wanted any more"))
        await asyncio.sleep(0)
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        gave_up.set()
        answers.append(await desk.ask(str, "wanted"))
        desk.close()

    threading.Thread(target=asyncio.run, args=(ask(),), daemon=True).start()
    assert gave_up.wait(30)
    desk.serve()
    assert answers == ["wanted"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
def test_the_shop_is_held_for_as_long_as_the_look_may_last(
    shop: ScriptedShop, settings: Settings
) -> None:
    settings.CRAWL_LEASE_SECONDS = 20

    def look() -> None:
        try:
            looking.look_at(f"{shop.url.rstrip('/')}/slow?seconds=2")
        finally:
            connections.close_all()

    began_at, thread = timezone.now(), threading.Thread(target=look)
    thread.start()
    try:
        wait_for(lambda: shop.requests["/slow"])
        held_until = Domain.objects.get().leased_until
    finally:
        thread.join(60)
    last_moment = looking.LONGEST_SECONDS + looking.FETCH.timeout_seconds
    assert held_until is not None
    assert held_until >= began_at + dt.timedelta(seconds=last_moment)
    assert Domain.objects.get().leased_until is None
