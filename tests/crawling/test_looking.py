"""A look at a page for somebody who waits: it always ends, and nobody asks beside it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from crawling.looking import Desk


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
