"""A whole Obsrv under load: three shops, a receiver, and a price plan known in advance."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg

from obsrv.demo.api import Api, ApiError
from obsrv.demo.receiver import Receiver
from obsrv.demo.stack import ROOT, Stack
from obsrv.demo.story import OVER
from obsrv.embedded import Layout
from tests.shop.server import ScriptedShop

DELAY_SECONDS = 0.8
# The key may ask 60 times a minute or so, and each look asks about every job.
LOOK_SECONDS = 1.5
# Not a tax more or less, which is doubted.
FACTORS = (Decimal("1.14"), Decimal("0.87"))
# What quality.md allows for all work to be done again after a fault.
RECOVERY_SECONDS = 75
WORKER = ("worker", "--without-gossip", "--without-mingle", "-l", "INFO", "-Q", "crawl", "-c", "2")


class Rig:
    """Use as a context manager: the products are approved and have their first price."""

    def __init__(
        self, var: Path, shop: ScriptedShop, receiver: Receiver, sites: int = 3, **environment: str
    ) -> None:
        var.parent.chmod(0o755)
        self.shop, self.receiver = shop, receiver
        self.hosts = [f"shop{n}.localhost:{shop.port}" for n in range(1, sites + 1)]
        pace = {"CRAWL_DEFAULT_DELAY_SECONDS": str(DELAY_SECONDS)}
        throw_away = {"OBSRV_EMBEDDED_THROW_AWAY": "true"}
        self.stack = Stack(var, **(pace | throw_away | environment))
        self.layout = Layout(var, throw_away=True)
        self.websites: list[str] = []
        self.jobs: list[str] = []
        self._others: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.stack.__enter__()
        try:
            self.api = Api(self.stack.url, self.stack.api_key)
            self._prepare()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in self._others:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for worker in crawl_workers(self.stack):
            worker.resume()
        self.stack.stop()

    def _prepare(self) -> None:
        self.receiver.secrets.append(self.api.post("/me/rotate-webhook-secret")["secret"])
        sites = [self._register(host) for host in self.hosts]
        self.websites = [site["id"] for site in sites]
        self.finish([site["discovery_job_id"] for site in sites])
        for website in self.websites:
            found = self.api.get(f"/websites/{website}/candidates?limit=200")["items"]
            ids = [candidate["id"] for candidate in found]
            self.api.post("/candidates/bulk", {"action": "approve", "ids": ids})
        kinds = [f"/jobs?kind=baseline&website={website}" for website in self.websites]
        self.finish([self.api.get(path)["items"][0]["id"] for path in kinds])

    def _register(self, host: str) -> Any:
        hook = f"{self.receiver.url}/{host.partition('.')[0]}"
        shop = {"base_url": f"http://{host}", "name": host, "webhook_endpoint_url": hook}
        return self.api.post("/websites", shop)

    def crawl_new_prices(self) -> None:
        """Every second product costs more, the others less, so that no shop moves as a whole
        (which is one event); and every shop is crawled."""
        for article, factor in zip(self.shop.catalogue.all(), cycle(FACTORS), strict=False):
            price = (article.price * factor).quantize(Decimal("0.01"))
            self.shop.set_price(article.slug, price)
        started = [self.api.post(f"/websites/{site}/crawl") for site in self.websites]
        self.jobs = [job["id"] for job in started]

    def await_pages(self, count: int) -> None:
        """Until so many pages of the new crawl are written."""
        self.until(lambda: sum(job["processed"] for job in self._look(self.jobs)) >= count)

    def finish(self, jobs: list[str] | None = None, seconds: float = RECOVERY_SECONDS) -> float:
        """Wait for the jobs; answers how long that took."""
        wanted, began = jobs or self.jobs, time.monotonic()
        self.until(lambda: all(j["status"] in OVER for j in self._look(wanted)), seconds)
        took = time.monotonic() - began
        done = self.sql("SELECT status FROM crawling_crawljob WHERE id = ANY(%s::uuid[])", wanted)
        assert {row[0] for row in done} == {"success"}
        return took

    def _look(self, jobs: list[str]) -> list[Any]:
        return [self.api.get(f"/jobs/{job}") for job in jobs]

    def until(self, done: Callable[[], bool], seconds: float = RECOVERY_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not answered(done):
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(LOOK_SECONDS)

    def start(self, *command: str) -> psutil.Process:
        """One more process of the same Obsrv, ended with the rig."""
        with (self.stack.var / "log" / "extra.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "obsrv", *command],
                cwd=ROOT,
                env=self.stack.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._others.append(process)
        return psutil.Process(process.pid)

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.layout.database_url, autocommit=True) as connection:
            return connection.execute(query.encode(), values).fetchall()


def answered(done: Callable[[], bool]) -> bool:
    """A service that is away says so or is silent; it never says that it is broken."""
    try:
        return done()
    except ApiError as error:
        if error.status not in (429, 503):
            raise
    except OSError:
        pass
    return False


def crawl_workers(stack: Stack) -> list[psutil.Process]:
    """The crawl worker and the processes of its pool."""
    children = psutil.Process(stack.pid).children(recursive=True)
    return [child for child in children if is_crawl_worker(child)]


def is_crawl_worker(process: psutil.Process) -> bool:
    try:
        return "crawl@" in " ".join(process.cmdline())
    except psutil.Error:
        return False
