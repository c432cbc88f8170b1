"""Thousands of product pages, served by a process of their own as fast as one core can.

``with BulkShop(products=2000, hosts=50) as shop: shop.urls; shop.reprice(0.1); shop.truth(7)``

Names like ``shop3.localhost`` need a resolver that knows them (RFC 6761 leaves that to the
client); with ``addresses=True`` the hosts are 127.0.0.1, 127.0.0.2 … and need none (Linux).
Pages of a ``volatile`` shop differ in a number each time they are asked for, and come unpacked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, cast
from urllib.parse import parse_qs

import uvloop
from isal import isal_zlib

from tests.shop.bulk_pages import MIX, SMALL, BulkCatalogue, PageMaker, Truth

ROOT = Path(__file__).resolve().parent.parent.parent
# The server looks this often whether the process that started it is still there.
ORPHAN_CHECK_SECONDS = 0.5
START_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 10
BACKLOG = 1024


def host_names(hosts: int, *, addresses: bool) -> list[str]:
    if addresses or hosts == 1:
        return [f"127.0.0.{number}" for number in range(1, hosts + 1)]
    return [f"shop{number}.localhost" for number in range(hosts)]


class BulkShop:
    def __init__(
        self,
        products: int = 2000,
        hosts: int = 1,
        *,
        seed: int = 1,
        addresses: bool = False,
        forms: Sequence[str] = MIX,
        volatile: bool = False,
        fill: tuple[int, int] = SMALL,
    ) -> None:
        if addresses and hosts > 254:
            raise ValueError("at most 254 hosts as addresses")
        self.catalogue = BulkCatalogue(products, seed, forms)
        self.volatile = volatile
        self.fill = fill
        self.names = host_names(hosts, addresses=addresses)
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def hosts(self) -> list[str]:
        return [f"http://{name}:{self.port}" for name in self.names]

    @property
    def urls(self) -> list[str]:
        return [self.url(index) for index in range(len(self.catalogue))]

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process.pid

    @property
    def served(self) -> int:
        """Answers given so far, all paths."""
        return int(self._control("GET")["served"])

    def url(self, index: int) -> str:
        return f"{self.hosts[index % len(self.names)]}/p/{index}"

    def truth(self, index: int, version: int | None = None) -> Truth:
        return self.catalogue.truth(index, version)

    def reprice(self, changed: float) -> list[int]:
        """Re-price this share of the products and return which; also learns of others' calls."""
        shares = self._control("POST", f"?changed={changed}")["shares"]
        indices: list[int] = []
        for share in shares[self.catalogue.version :]:
            indices = self.catalogue.reprice(share)
        return indices

    def _control(self, method: str, query: str = "") -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.port}/_control{query}"
        request = urllib.request.Request(url, method=method)
        # An environment's proxy has no business on loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=START_TIMEOUT_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def start(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.shop.bulk", f"--parent={os.getpid()}"]
            + [f"--products={len(self.catalogue)}", f"--seed={self.catalogue.seed}"]
            + [f"--name={name}" for name in self.names]
            + [f"--form={form}" for form in self.catalogue.forms]
            + [f"--fill={count}" for count in self.fill]
            + (["--volatile"] if self.volatile else []),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("the bulk shop did not start")
        self.port = int(line)
        return self

    def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Stored(NamedTuple):
    """An answer made in advance; ``etag`` is looked for in the raw request."""

    etag: bytes
    answer: bytes
    not_modified: bytes


def respond(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


NOT_FOUND = respond("404 Not Found", b"<h1>Not found</h1>", "Content-Type: text/html")


VISIT = b"x" * 12


class Site:
    """All answers of the server process."""

    def __init__(
        self, maker: PageMaker, catalogue: BulkCatalogue, bases: list[str], *, volatile: bool
    ) -> None:
        self.maker = maker
        self.catalogue = catalogue
        self.bases = bases
        self.volatile = volatile
        self.pages: dict[bytes, Stored] = {}
        self.served = 0
        for index in range(len(catalogue)):
            self._store(index)

    def _store(self, index: int) -> None:
        truth = self.catalogue.truth(index)
        if self.volatile:
            self._store_volatile(truth, index)
            return
        body = isal_zlib.compress(self.maker.page(truth, self.base_of(index)), wbits=31)
        etag = f'"{index}-{truth.version}"'
        answer = respond(
            "200 OK",
            body,
            "Content-Type: text/html; charset=utf-8",
            "Content-Encoding: gzip",
            "Vary: Accept-Encoding",
            f"ETag: {etag}",
        )
        not_modified = f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode()
        self.pages[truth.path.encode()] = Stored(etag.encode(), answer, not_modified)

    def _store_volatile(self, truth: Truth, index: int) -> None:
        mark = f'<meta name="visit" content="{VISIT.decode()}">'
        body = self.maker.page(truth, self.base_of(index), mark)
        answer = respond("200 OK", body, "Content-Type: text/html; charset=utf-8")
        self.pages[truth.path.encode()] = Stored(b"\0", answer, b"")

    def base_of(self, index: int) -> str:
        return self.bases[index % len(self.bases)]

    def answer(self, request: bytes) -> bytes:
        self.served += 1
        method, _, rest = request.partition(b" ")
        target = rest[: rest.find(b" ")]
        stored = self.pages.get(target)
        if stored is None:
            return self._answer_other(method, target.decode("latin-1"), request)
        if self.volatile:
            return stored.answer.replace(VISIT, b"%012d" % self.served)
        if stored.etag in request:
            return stored.not_modified
        return stored.answer if b"gzip" in request else unpacked(stored)

    def _answer_other(self, method: bytes, target: str, request: bytes) -> bytes:
        path, _, query = target.partition("?")
        if path == "/_control":
            return self._answer_control(method, query)
        base = "http://" + host_of(request)
        if path == "/robots.txt":
            text = f"User-agent: *\nAllow: /\nSitemap: {base}/sitemap.xml\n"
            return respond("200 OK", text.encode(), "Content-Type: text/plain")
        if path == "/sitemap.xml":
            return respond("200 OK", self._sitemap(base), "Content-Type: application/xml")
        return NOT_FOUND

    def _answer_control(self, method: bytes, query: str) -> bytes:
        if method == b"POST":
            for index in self.catalogue.reprice(float(parse_qs(query)["changed"][0])):
                self._store(index)
        state = {
            "version": self.catalogue.version,
            "shares": self.catalogue.shares,
            "served": self.served,
        }
        return respond("200 OK", json.dumps(state).encode(), "Content-Type: application/json")

    def _sitemap(self, base: str) -> bytes:
        indices = [i for i in range(len(self.catalogue)) if self.base_of(i) == base]
        entries = "".join(f"<url><loc>{base}/p/{i}</loc></url>" for i in indices)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return f'<?xml version="1.0"?><urlset xmlns="{space}">{entries}</urlset>'.encode()


def unpacked(stored: Stored) -> bytes:
    body = zlib.decompress(stored.answer.partition(b"\r\n\r\n")[2], wbits=31)
    etag = stored.etag.decode()
    return respond("200 OK", body, "Content-Type: text/html; charset=utf-8", f"ETag: {etag}")


def host_of(request: bytes) -> str:
    for line in request.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"host":
            return value.strip().decode("latin-1")
    return ""


class Connection(asyncio.Protocol):
    """Just enough HTTP/1.1 for requests without a body: keep-alive and pipelining."""

    transport: asyncio.Transport

    def __init__(self, site: Site) -> None:
        self.site = site
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *requests, self.buffer = (self.buffer + data).split(b"\r\n\r\n")
        for request in requests:
            self.transport.write(self.site.answer(request))
            if b"onnection: close" in request:
                self.transport.close()
                return


async def end_with(parent: int) -> None:
    """A killed parent cannot say goodbye; its orphan is handed to another process id."""
    while os.getppid() == parent:
        await asyncio.sleep(ORPHAN_CHECK_SECONDS)


async def serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    watch = loop.create_task(end_with(options.parent))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, watch.cancel)
    listeners = listen(options.name)
    port = listeners[0].getsockname()[1]
    catalogue = BulkCatalogue(options.products, options.seed, options.form)
    maker = PageMaker(options.seed, tuple(options.fill))
    bases = [f"http://{name}:{port}" for name in options.name]
    site = Site(maker, catalogue, bases, volatile=options.volatile)
    for listener in listeners:
        await loop.create_server(lambda: Connection(site), sock=listener, backlog=BACKLOG)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.wait([watch])


def listen(names: list[str]) -> list[socket.socket]:
    """One port for all: 127.0.0.1 always, further addresses where they are the host names."""
    first = socket.create_server(("127.0.0.1", 0))
    port = first.getsockname()[1]
    others = [name for name in names if name.startswith("127.") and name != "127.0.0.1"]
    return [first, *(socket.create_server((name, port)) for name in others)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--products", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--name", action="append", required=True)
    parser.add_argument("--form", action="append", required=True)
    parser.add_argument("--fill", action="append", type=int, required=True)
    parser.add_argument("--volatile", action="store_true")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
