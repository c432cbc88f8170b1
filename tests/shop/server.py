"""The demo shop with everything that goes wrong on the web, and a log of who asked when."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from itertools import pairwise
from typing import NoReturn

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from obsrv.demo import pages
from obsrv.demo.shop import DemoShop, html, robots_text
from tests.shop.platforms import PlatformPages

MIB = 1024 * 1024
CHUNK = b"<p>" + b"x" * (64 * 1024 - 7) + b"</p>"

BOT_WALL = """<!doctype html><html><head><title>Just a moment...</title></head><body>
<h1>Checking your browser before you continue</h1>
<p>Please verify you are a human. Enable JavaScript and cookies to continue.</p>
<div class="g-recaptcha" data-sitekey="6Lc-test"></div>
<form id="challenge-form" action="/cdn-cgi/l/chk_captcha"></form></body></html>"""

JS_ONLY = """<!doctype html><html><head><title>Shop</title></head><body>
<div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript>
<script>
fetch("/js-only.json").then(answer => answer.json()).then(product => {
  const data = document.createElement("script");
  data.type = "application/ld+json";
  data.textContent = JSON.stringify(product);
  document.head.append(data);
  document.title = product.name;
  document.getElementById("root").innerHTML =
    `<h1>${product.name}</h1><p class="price">${product.offers.price} €</p>`;
});
</script></body></html>"""
JS_ONLY_PRODUCT = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Rendered Lamp",
    "sku": "JS-1",
    "offers": {
        "@type": "Offer",
        "price": "54.20",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    },
}


@dataclass(frozen=True, slots=True)
class Robots:
    """``body=None`` is the demo shop's own file."""

    status: int = 200
    body: str | None = None
    delay_seconds: float = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Hit:
    """One request; times are of ``time.monotonic``, status 0 means no whole answer was given."""

    host: str
    path: str
    query: str
    user_agent: str
    started: float
    headers: dict[str, str] = field(default_factory=dict)
    ended: float = 0
    status: int = 0


class ScriptedShop(DemoShop):
    """``robots``, ``validators`` (ETag and Last-Modified) and the catalogue change live."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.robots = Robots()
        self.validators = True
        self.platforms = PlatformPages(self.catalogue)
        self._hits: list[Hit] = []
        self._hits_lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        self._busiest: Counter[str] = Counter()
        self._first_seen: dict[tuple[str, str], datetime] = {}
        self._attempts: Counter[str] = Counter()

    @property
    def log(self) -> list[Hit]:
        with self._hits_lock:
            return list(self._hits)

    @property
    def max_concurrent(self) -> int:
        """The most requests under way at once at any one host name."""
        with self._hits_lock:
            return max(self._busiest.values(), default=0)

    def gaps(self, host: str | None = None) -> list[float]:
        """Seconds between the starts of successive requests (to one host name)."""
        starts = sorted(hit.started for hit in self.log if host in (None, hit.host))
        return [later - earlier for earlier, later in pairwise(starts)]

    def forget(self) -> None:
        """Empty the log and the counts."""
        with self._hits_lock:
            self._hits.clear()
            self._busiest.clear()
        with self._counts_lock:
            self._counts.clear()

    def middlewares(self) -> Sequence[Middleware]:
        return [self._record, *super().middlewares(), self._validate]

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [
            web.get("/robots.txt", self._scripted_robots),
            web.get("/slow", slow),
            web.get("/drip", drip),
            web.get("/reset", reset),
            web.get("/429", too_many_requests),
            web.get("/503", unavailable),
            web.get("/status/{status}", any_status),
            web.get("/flaky", self._flaky),
            web.get("/bot-wall", bot_wall),
            web.get("/soft-404", soft_404),
            web.get("/redirect-loop", redirect_loop),
            web.get("/redirect-to", redirect_to),
            web.get("/redirect-chain", redirect_chain),
            web.get("/wrong-charset", wrong_charset),
            web.get("/js-only", js_only),
            web.get("/js-only.json", js_only_product),
            web.get("/too-big", too_big),
            web.get("/bomb", bomb),
            web.get("/truncated", truncated),
            web.get("/film", film),
            web.get("/", self._marked_home),
            *self.platforms.routes(),
            *super().routes(),
        ]

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        hit = self._begin(request)
        try:
            response = await handler(request)
            if request.transport is not None and not request.transport.is_closing():
                hit.status = response.status
            return response
        except web.HTTPException as answer:
            hit.status = answer.status
            raise
        finally:
            self._end(hit)

    def _begin(self, request: web.Request) -> Hit:
        hit = Hit(
            host=request.host,
            path=request.path,
            query=request.query_string,
            user_agent=request.headers.get("User-Agent", ""),
            started=time.monotonic(),
            headers=dict(request.headers),
        )
        with self._hits_lock:
            self._hits.append(hit)
            self._busy[hit.host] += 1
            self._busiest[hit.host] = max(self._busiest[hit.host], self._busy[hit.host])
        return hit

    def _end(self, hit: Hit) -> None:
        with self._hits_lock:
            hit.ended = time.monotonic()
            self._busy[hit.host] -= 1

    @web.middleware
    async def _validate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        body = whole_page(response)
        if not self.validators or body is None:
            return response
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        modified_at = self._first_seen.setdefault((request.path, etag), now_in_seconds())
        headers = {"ETag": etag, "Last-Modified": format_datetime(modified_at, usegmt=True)}
        if is_unchanged(request, etag, modified_at):
            return web.Response(status=304, headers=headers)
        response.headers.update(headers)
        return response

    async def _scripted_robots(self, request: web.Request) -> web.StreamResponse:
        robots = self.robots
        await asyncio.sleep(robots.delay_seconds)
        text = robots_text(request) if robots.body is None else robots.body
        return web.Response(text=text, status=robots.status, headers=robots.headers)

    async def _marked_home(self, request: web.Request) -> web.StreamResponse:
        page = pages.listing_page("Things that last", self.catalogue.all())
        return html(self.platforms.marked(page))

    async def _flaky(self, request: web.Request) -> web.StreamResponse:
        """503 for the first ``times`` requests of this very URL, then a page."""
        self._attempts[request.path_qs] += 1
        if self._attempts[request.path_qs] <= int(request.query.get("times", "2")):
            return html("Try again", status=503)
        return html(plain_page("Back again"))


def plain_page(title: str) -> str:
    return pages.document(title, f"<h1>{title}</h1>")


def now_in_seconds() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def whole_page(response: web.StreamResponse) -> bytes | None:
    if not isinstance(response, web.Response) or response.status != 200:
        return None
    return response.body if isinstance(response.body, bytes) else None


def is_unchanged(request: web.Request, etag: str, modified_at: datetime) -> bool:
    if wanted := request.headers.get("If-None-Match"):
        return etag in wanted
    since = request.headers.get("If-Modified-Since")
    return since is not None and modified_at <= parsedate_to_datetime(since)


def seconds_asked(request: web.Request, default: str) -> float:
    return float(request.query.get("seconds", default))


async def slow(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(seconds_asked(request, "60"))
    return html(plain_page("Slow at last"))


async def film(request: web.Request) -> web.StreamResponse:
    """No page, and without end: only who looks at its type first gets away early."""
    response = web.StreamResponse(headers={"Content-Type": "video/mp4"})
    await response.prepare(request)
    while True:
        await response.write(b"\0" * 1024)
        await asyncio.sleep(0.05)


async def drip(request: web.Request) -> web.StreamResponse:
    """Always alive, never done: read timeouts do not catch it, only a total does."""
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    for byte in b"<html><body>" + b"." * 100_000:
        await response.write(bytes([byte]))
        await asyncio.sleep(seconds_asked(request, "0.2"))
    return response


async def reset(request: web.Request) -> web.StreamResponse:
    transport = request.transport
    if transport is not None:
        # Linger of zero makes the kernel answer with RST instead of an orderly end.
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    return web.Response()


def retry_after(request: web.Request) -> dict[str, str]:
    """``?retry_after=30`` in seconds, ``?retry_after=30&form=date`` as a date, else none."""
    seconds = request.query.get("retry_after")
    if seconds is None:
        return {}
    if request.query.get("form") != "date":
        return {"Retry-After": seconds}
    moment = datetime.now(UTC) + timedelta(seconds=float(seconds))
    return {"Retry-After": format_datetime(moment, usegmt=True)}


async def too_many_requests(request: web.Request) -> web.StreamResponse:
    return web.Response(status=429, text="Too many requests", headers=retry_after(request))


async def unavailable(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, text="Down for maintenance", headers=retry_after(request))


async def any_status(request: web.Request) -> web.StreamResponse:
    return html(plain_page("Scripted"), status=int(request.match_info["status"]))


async def bot_wall(_request: web.Request) -> web.StreamResponse:
    return html(BOT_WALL)


async def soft_404(_request: web.Request) -> web.StreamResponse:
    return html(pages.missing_page())


async def redirect_loop(request: web.Request) -> NoReturn:
    turn = "b" if request.query.get("turn") != "b" else "a"
    raise web.HTTPFound(f"/redirect-loop?turn={turn}")


async def redirect_to(request: web.Request) -> web.StreamResponse:
    # Built by hand: HTTPFound would tidy up the hostile URLs that tests pass in.
    status = int(request.query.get("status", "302"))
    return web.Response(status=status, headers={"Location": request.query["url"]})


async def redirect_chain(request: web.Request) -> web.StreamResponse:
    left = int(request.query.get("hops", "6"))
    if left <= 0:
        return html(plain_page("Arrived"))
    raise web.HTTPFound(f"/redirect-chain?hops={left - 1}")


async def wrong_charset(request: web.Request) -> web.StreamResponse:
    """UTF-8 by its meta tag, ``?bytes=`` in truth, ``?header=`` in its header."""
    text = plain_page("Käsehobel für 12,90 €")
    return web.Response(
        body=text.encode(request.query.get("bytes", "utf-8")),
        headers={"Content-Type": f"text/html; charset={request.query.get('header', 'iso-8859-1')}"},
    )


async def js_only(_request: web.Request) -> web.StreamResponse:
    return html(JS_ONLY)


async def js_only_product(_request: web.Request) -> web.StreamResponse:
    return web.json_response(JS_ONLY_PRODUCT)


async def too_big(request: web.Request) -> web.StreamResponse:
    """Chunked, so that only counting finds out; ``?declared=1`` says its length."""
    size = int(request.query.get("mib", "20")) * MIB
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    if request.query.get("declared"):
        response.content_length = size
    await response.prepare(request)
    for _ in range(size // len(CHUNK)):
        await response.write(CHUNK)
    return response


@functools.cache
def gzip_bomb(mib: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(b"<html><body>")
    return start + b"".join(packer.compress(b" " * MIB) for _ in range(mib)) + packer.flush()


async def bomb(request: web.Request) -> web.StreamResponse:
    return web.Response(
        body=gzip_bomb(int(request.query.get("mib", "100"))),
        headers={"Content-Type": "text/html", "Content-Encoding": "gzip"},
    )


async def truncated(request: web.Request) -> web.StreamResponse:
    body = plain_page("Cut off").encode()
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
