from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client as TestClient
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.factories.accounts import UserFactory

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # Nothing but the server under test has an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
]


def find_browser(playwright: Playwright) -> str | None:
    found = filter(None, [os.environ.get("CHROMIUM_PATH"), *map(shutil.which, COMMANDS)])
    own = playwright.chromium.executable_path
    return next(found, own if Path(own).exists() else None)


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """One for each test: Playwright's loop runs in this thread as long as the browser does,
    and other tests of the same worker have loops of their own."""
    # For that loop Django would refuse to touch the database.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        path = find_browser(playwright)
        if path is None:
            pytest.skip("no Chromium: install one, or name it in CHROMIUM_PATH")
        with playwright.chromium.launch(executable_path=path, args=ARGUMENTS) as browser:
            yield browser


@dataclass
class Console:
    """The console in a browser, and whatever went wrong in there."""

    origin: str
    context: BrowserContext
    troubles: list[str] = field(default_factory=list)
    page: Page = field(init=False)

    def __post_init__(self) -> None:
        self.page = page = self.context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"script error: {error}"))
        page.on("request", self._look_at)
        page.on("requestfailed", self._note_failure)
        page.on("response", self._note_status)
        page.on("dialog", self._close)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.origin}{path}", wait_until="load")
        return self.page

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self.troubles.append(f"{self.page.url} says: {message.text}")

    def _look_at(self, request: Any) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.troubles.append(f"{self.page.url} asks outside: {request.url}")

    def _note_failure(self, request: Any) -> None:
        # Leaving a page cuts off what it was still loading.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"{request.url} failed: {request.failure}")

    def _note_status(self, response: Any) -> None:
        if response.status >= 400:
            self.troubles.append(f"{response.url} answered {response.status}")

    def _close(self, dialog: Any) -> None:
        self.troubles.append(f"{self.page.url} opened a dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def visitor(chromium: Browser, live_server: LiveServer) -> Iterator[Console]:
    """Not logged in; a test fails when its pages were in trouble."""
    with chromium.new_context(viewport={"width": 1400, "height": 900}) as context:
        console = Console(live_server.url, context)
        yield console
        assert console.troubles == []


@pytest.fixture
def console(visitor: Console) -> Console:
    """Logged in as an operator who may do everything."""
    session = TestClient()
    session.force_login(UserFactory.create(superuser=True))
    name = settings.SESSION_COOKIE_NAME
    value = session.cookies[name].value
    visitor.context.add_cookies([{"name": name, "value": value, "url": visitor.origin}])
    return visitor
