"""A small web shop on loopback whose prices and stock change on command.

``with DemoShop() as shop: shop.set_price("desk-lamp", "29.90")``
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from obsrv.demo import pages
from obsrv.demo.catalogue import CATEGORIES, Article, Catalogue, demo_articles
from obsrv.demo.loopback import HOST, LoopbackServer

DEMO_SHOP_PORT = 8099
DEMO_SHOP_URL = f"http://{HOST}:{DEMO_SHOP_PORT}"
# Handlers still busy when the shop closes are cut off after this long.
SHUTDOWN_SECONDS = 0.2


def html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


class DemoShop(LoopbackServer):
    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.catalogue = Catalogue(demo_articles())
        self._counts: Counter[str] = Counter()
        self._counts_lock = threading.Lock()
        self._runner: web.AppRunner | None = None

    @property
    def requests(self) -> Counter[str]:
        """How often each path was asked for, as of now."""
        with self._counts_lock:
            return Counter(self._counts)

    @property
    def slugs(self) -> list[str]:
        return [article.slug for article in self.catalogue.all()]

    @property
    def product_urls(self) -> list[str]:
        return [self.url + article.path for article in self.catalogue.all()]

    def product_url(self, slug: str) -> str:
        return f"{self.url}/products/{slug}"

    def set_price(self, slug: str, price: str | Decimal) -> None:
        self.catalogue.set_price(slug, Decimal(price))

    def set_stock(self, slug: str, in_stock: bool) -> None:  # noqa: FBT001
        self.catalogue.set_stock(slug, in_stock=in_stock)

    def remove(self, slug: str) -> None:
        self.catalogue.remove(slug)

    def restore(self, slug: str) -> None:
        self.catalogue.restore(slug)

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [
            web.get("/", self._home),
            web.get("/category/{slug}", self._category),
            web.get("/products/{slug}", self._product),
            web.post("/products/{slug}", self._change),
            web.get("/images/{slug}.svg", self._image),
            web.get("/style.css", self._style),
            web.get("/robots.txt", self._robots),
            web.get("/sitemap.xml", self._sitemap),
            *(web.get(f"/{slug}", self._text) for slug in pages.TEXTS),
        ]

    def middlewares(self) -> Sequence[Middleware]:
        return [self._count, _show_missing_page]

    async def open(self, port: int) -> int:
        app = web.Application(middlewares=self.middlewares())
        app.add_routes(self.routes())
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._counts_lock:
            self._counts[request.path] += 1
        return await handler(request)

    async def _home(self, _request: web.Request) -> web.StreamResponse:
        return html(pages.listing_page("Things that last", self.catalogue.all()))

    async def _category(self, request: web.Request) -> web.StreamResponse:
        slug = request.match_info["slug"]
        if slug not in CATEGORIES:
            raise web.HTTPNotFound
        articles = [article for article in self.catalogue.all() if article.category == slug]
        return html(pages.listing_page(CATEGORIES[slug], articles))

    async def _product(self, request: web.Request) -> web.StreamResponse:
        article = self._article(request)
        related = [
            other
            for other in self.catalogue.all()
            if other.category == article.category and other.slug != article.slug
        ]
        base = f"http://{request.host}"
        return html(pages.product_page(article, base=base, related=related[:4]))

    async def _change(self, request: web.Request) -> web.StreamResponse:
        """The shopkeeper's door: ``price=29.90`` and ``stock=0`` or ``stock=1``."""
        article, wanted = self._article(request), request.query
        try:
            if "price" in wanted:
                self.set_price(article.slug, Decimal(wanted["price"]))
            if "stock" in wanted:
                self.set_stock(article.slug, wanted["stock"] not in ("0", "false", ""))
        except ArithmeticError:
            return web.Response(status=400, text="price must be a number such as 29.90\n")
        return web.Response(text=f"{article.slug} changed\n")

    async def _image(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=pages.image(self._article(request)), content_type="image/svg+xml")

    async def _style(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text=pages.CSS, content_type="text/css")

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return html(pages.text_page(request.path.strip("/")))

    async def _robots(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=robots_text(request))

    async def _sitemap(self, request: web.Request) -> web.StreamResponse:
        text = pages.sitemap(self.catalogue.all(), f"http://{request.host}")
        return web.Response(text=text, content_type="application/xml")

    def _article(self, request: web.Request) -> Article:
        article = self.catalogue.get(request.match_info["slug"])
        if article is None:
            raise web.HTTPNotFound
        return article


def robots_text(request: web.Request) -> str:
    return f"User-agent: *\nDisallow: /basket\n\nSitemap: http://{request.host}/sitemap.xml\n"


@web.middleware
async def _show_missing_page(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return html(pages.missing_page(), status=404)
