from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.text import Text

from obsrv.demo.api import Api, ApiError
from obsrv.demo.receiver import Receiver
from obsrv.demo.shop import DemoShop
from obsrv.demo.stack import Stack, StackError
from obsrv.demo.story import Story


class Command(BaseCommand):
    help = "Tells the story offline: a shop, discovery, approval, a price drop, signed webhooks."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.started_at = time.monotonic()
        self.chapter = 0
        try:
            self._tell()
        except (StackError, ApiError, TimeoutError) as error:
            raise CommandError(f"The demo did not come to its end: {error}") from error

    def _tell(self) -> None:
        var = settings.BASE_DIR / "var" / "demo"
        # Each telling starts from nothing; real data is never kept here.
        shutil.rmtree(var, ignore_errors=True)
        with DemoShop() as shop, Receiver() as receiver:
            self._say("Start", f"demo shop {shop.url}, receiver {receiver.url}; starting Obsrv …")
            with Stack(var) as stack:
                story = Story(Api(stack.url, stack.api_key), shop, receiver)
                self._chapter("Register", story.register)
                self._chapter("Discover", story.discover)
                self._chapter("Approve", story.approve)
                self._chapter("Change", story.change)
                self._chapter("Notify", story.hear)
                look = f"OBSRV_VAR_DIR={var.relative_to(settings.BASE_DIR)} bin/up"
                password = stack.password
        self._say("Done", f"look around: {look}")
        self._line(f"then http://localhost:8000/admin/ as operator, password {password}")

    def _chapter(self, title: str, tell: Callable[[], Iterator[str]]) -> None:
        for number, line in enumerate(tell()):
            if number:
                self._line(line)
            else:
                self._say(title, line)

    def _say(self, title: str, line: str) -> None:
        self.chapter += 1
        seconds = time.monotonic() - self.started_at
        self.console.print(Text(f"[{self.chapter}/7 {seconds:4.1f} s] {title}: {line}"))

    def _line(self, line: str) -> None:
        self.console.print(Text(f"              {line}"))
