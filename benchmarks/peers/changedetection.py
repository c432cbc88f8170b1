"""changedetection.io in its restock mode, over its own API, as somebody would run it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from benchmarks import cpu
from benchmarks.peers.environments import python_of
from benchmarks.receiver import BulkReceiver
from tests.shop.bulk import BulkShop

START_SECONDS, CHECK_SECONDS, NEWS_SECONDS = 120, 600, 60
WORKERS = 10
# Its API gives the time of a check in whole seconds.
LOOK_SECONDS = 1.0
SNAPSHOT = re.compile(r"In Stock: (True|False) - Price: ([\d.]+)")


@dataclass(frozen=True, slots=True)
class Round:
    """One check of all watches."""

    pages: int
    right: int
    told: int
    seconds: float
    cpu: float

    @property
    def milliseconds(self) -> float:
        """CPU of its process tree for a page."""
        return 1000 * self.cpu / self.pages


class ChangeDetection:
    def __init__(self, shop: BulkShop, receiver: BulkReceiver) -> None:
        self.shop, self.receiver = shop, receiver
        self.hook = receiver.url.replace("http://", "json://")

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="obsrv-bench-")
        self.home = Path(self._folder.name)
        self.port = _free_port()
        program = python_of("changedetection").with_name("changedetection.io")
        # Named at the start, its first watch takes the place of two examples on the web.
        first, options = self.shop.urls[0], json.dumps(self._options())
        self._process = subprocess.Popen(
            [
                *(str(program), "-C", "-d", str(self.home), "-h", "127.0.0.1"),
                *("-p", str(self.port), "-u", first, "-u0", options),
            ],
            env=self._environment(),
            cwd=self.home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self.key = self._await_key()
            (known,) = self._ask("GET", "watch")
            others = {self._watch(url): n for n, url in enumerate(self.shop.urls) if n}
            self.watches = {known: 0, **others}
            # It looks at what is new by itself.
            self.await_checks(since=1)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def check_all(self, changed: int = 0) -> Round:
        """Ask for a check of all; wait until each is done and the changed ones were told."""
        # One that was checked in this very second would be taken for checked again.
        time.sleep(2 * LOOK_SECONDS)
        before, began, asked = cpu.of_tree(self._process.pid), time.perf_counter(), time.time()
        self._ask("GET", "watch?recheck_all=1")
        self.await_checks(since=int(asked))
        told = self._await_news(changed)
        seconds = time.perf_counter() - began
        took = cpu.of_tree(self._process.pid) - before
        return Round(len(self.watches), self._right(), told, seconds, took)

    def await_checks(self, since: int) -> None:
        deadline = time.monotonic() + CHECK_SECONDS
        while time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            listed = self._ask("GET", "watch")
            if all(listed[key]["last_checked"] >= since for key in self.watches):
                return
        raise RuntimeError("changedetection.io did not check all its watches in time")

    def _await_news(self, expected: int) -> int:
        deadline, told = time.monotonic() + NEWS_SECONDS, 0
        while told < expected and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            told += len(self.receiver.times())
        return told

    def _right(self) -> int:
        return sum(self._is_right(key, number) for key, number in self.watches.items())

    def _is_right(self, key: str, number: int) -> bool:
        """Its snapshot is a line of stock and price; the currency is not among what it keeps."""
        truth = self.shop.truth(number)
        said = SNAPSHOT.search(self._get(f"watch/{key}/history/latest").decode())
        if said is None:
            return False
        stock, price = said.groups()
        return stock == str(truth.in_stock) and Decimal(price) == truth.price

    def _watch(self, url: str) -> str:
        return str(self._ask("POST", "watch", {"url": url, **self._options()})["uuid"])

    def _options(self) -> dict[str, Any]:
        return {
            "processor": "restock_diff",
            "fetch_backend": "html_requests",
            "time_between_check": {"weeks": 4},
            "time_between_check_use_default": False,
            "notification_urls": [f"{self.hook}/hook"],
        }

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return kept | {
            "HOME": str(self.home),
            "ALLOW_IANA_RESTRICTED_ADDRESSES": "true",
            "DISABLE_VERSION_CHECK": "yes",
            "FETCH_WORKERS": str(WORKERS),
            "LOGGER_LEVEL": "ERROR",
        }

    def _await_key(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            if self._process.poll() is not None:
                raise RuntimeError(f"changedetection.io ended with {self._process.returncode}")
            for path in self.home.glob("*.json"):
                known = json.loads(path.read_text() or "{}").get("settings", {})
                if (
                    key := known.get("application", {}).get("api_access_token")
                ) and self._answers():
                    return str(key)
        raise RuntimeError("changedetection.io did not start in time")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._get(path, method, body))

    def _get(self, path: str, method: str = "GET", body: Any = None) -> bytes:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"x-api-key": self.key, "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                found: bytes = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read()[:300]!r}") from error
        return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
