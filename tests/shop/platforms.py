"""What shop platforms publish beside their pages: sitemap indexes and lists of products."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

from aiohttp import web

from obsrv.demo import pages
from obsrv.demo.catalogue import CURRENCY, Article, Catalogue

MARKS = {
    "shopify": '<script src="https://cdn.shopify.com/s/files/theme.js"></script>',
    "woocommerce": '<link rel="stylesheet" href="/wp-content/plugins/woocommerce/style.css">',
}


class PlatformPages:
    """``platform`` says as what the shop poses."""

    platform = ""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [
            web.get("/products.json", self._shopify),
            web.get("/wp-json/wc/store/v1/products", self._woo),
            web.get("/sitemap_index.xml", self._index),
            web.get("/sitemap_products.xml.gz", self._packed),
            web.get("/sitemap_pages.xml", self._texts),
            web.get("/sitemap_nested.xml", self._nested),
            web.get("/sitemap_doctype.xml", self._doctype),
            web.get("/app", self._scripted),
            web.get("/app/p/{number}", self._scripted),
        ]

    def marked(self, text: str) -> str:
        return text.replace("</head>", f"{MARKS.get(self.platform, '')}</head>")

    async def _shopify(self, request: web.Request) -> web.StreamResponse:
        self._must_be("shopify")
        listed = [shopify(article) for article in self._part(request, "limit")]
        return web.json_response({"products": listed})

    async def _woo(self, request: web.Request) -> web.StreamResponse:
        self._must_be("woocommerce")
        base = f"http://{request.host}"
        return web.json_response([woo(one, base) for one in self._part(request, "per_page")])

    def _must_be(self, platform: str) -> None:
        if self.platform != platform:
            raise web.HTTPNotFound

    def _part(self, request: web.Request, name: str) -> list[Article]:
        size, page = int(request.query[name]), int(request.query.get("page", "1"))
        return self._catalogue.all()[(page - 1) * size : page * size]

    async def _index(self, request: web.Request) -> web.StreamResponse:
        names = ("sitemap_pages.xml", "sitemap_products.xml.gz", "sitemap_nested.xml")
        return index_of(request, names)

    async def _nested(self, request: web.Request) -> web.StreamResponse:
        return index_of(request, ["sitemap_deeper.xml"])

    async def _packed(self, request: web.Request) -> web.StreamResponse:
        text = pages.sitemap(self._catalogue.all(), f"http://{request.host}")
        return web.Response(body=gzip.compress(text.encode()), content_type="application/gzip")

    async def _texts(self, request: web.Request) -> web.StreamResponse:
        return web.Response(
            text=pages.sitemap([], f"http://{request.host}"), content_type="application/xml"
        )

    async def _doctype(self, _request: web.Request) -> web.StreamResponse:
        text = '<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>'
        return web.Response(text=text, content_type="application/xml")

    async def _scripted(self, _request: web.Request) -> web.StreamResponse:
        text = (
            "<html><head><title>Shop</title></head><body><div id='root'></div>"
            "<noscript>You need to enable JavaScript to run this app.</noscript>"
            "<script src='/app.js'></script><a href='/app/p/1234'>x</a></body></html>"
        )
        return web.Response(text=text, content_type="text/html")


def index_of(request: web.Request, names: Sequence[str]) -> web.Response:
    entries = "".join(f"<sitemap><loc>http://{request.host}/{n}</loc></sitemap>" for n in names)
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    text = f"<sitemapindex {space}>{entries}</sitemapindex>"
    return web.Response(text=text, content_type="application/xml")


def shopify(article: Article) -> dict[str, object]:
    variant = {"sku": article.sku, "price": article.amount, "available": article.in_stock}
    return {
        "handle": article.slug,
        "title": article.name,
        "vendor": article.brand,
        "body_html": f"<p>{article.description}</p>",
        "variants": [variant | {"compare_at_price": None}],
        "images": [],
    }


def woo(article: Article, base: str) -> dict[str, object]:
    return {
        "name": article.name,
        "permalink": base + article.path,
        "sku": article.sku,
        "prices": {
            "price": str(int(article.price * 100)),
            "regular_price": str(int(article.price * 100)),
            "currency_code": CURRENCY,
            "currency_minor_unit": 2,
        },
        "is_in_stock": article.in_stock,
        "images": [],
    }
