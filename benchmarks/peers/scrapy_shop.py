"""Run by the interpreter of Scrapy's environment, not by ours: crawls the sitemap of a shop,
reads each page with the reader that is named, and copies the rows into PostgreSQL in batches.
Prints what it took as one JSON object. Standing alone, it imports nothing of Obsrv but the
extractor, and that only where it is asked for it."""

# mypy: ignore-errors

from __future__ import annotations

import json
import resource
import sys
import time

import psycopg
import scrapy
from price_parser import Price
from scrapy.crawler import CrawlerProcess

BATCH = 500
SYNTAXES = ["json-ld", "microdata", "opengraph"]
COPY = "COPY bench_scrapy (url, price, currency, stock) FROM STDIN"
SETTINGS = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "LOG_LEVEL": "ERROR",
}


def read_by_extruct(response):
    import extruct

    data = extruct.extract(response.text, base_url=response.url, syntaxes=SYNTAXES, uniform=True)
    for node in products(data["json-ld"] + data["microdata"]):
        offers = node.get("offers") or (node.get("hasVariant") or [{}])[0].get("offers") or {}
        offer = offers[0] if isinstance(offers, list) else offers
        amount = offer.get("price") or offer.get("lowPrice")
        if amount:
            stock = str(offer.get("availability", "")).rpartition("/")[2]
            return Price.fromstring(str(amount)).amount, offer.get("priceCurrency"), stock
    for node in data["opengraph"]:
        if amount := node.get("product:price:amount"):
            named = {"instock": "InStock", "oos": "OutOfStock"}
            stock = named.get(node.get("product:availability"), "")
            return Price.fromstring(amount).amount, node.get("product:price:currency"), stock
    return None, None, None


def products(nodes):
    for node in nodes:
        for one in [node, *node.get("@graph", [])]:
            if one.get("@type") in ("Product", "ProductGroup"):
                yield one


def read_by_obsrv(response):
    from extraction.items import Hints, ProductItem
    from extraction.product import extract_product

    kind = response.headers["Content-Type"].decode()
    item = extract_product(response.body, response.url, content_type=kind, hints=Hints())
    if not isinstance(item, ProductItem):
        return None, None, None
    stock = {"in_stock": "InStock", "out_of_stock": "OutOfStock"}.get(str(item.stock), "")
    return item.price, item.currency, stock


READERS = {"extruct": read_by_extruct, "obsrv": read_by_obsrv}


class ShopSpider(scrapy.spiders.SitemapSpider):
    name = "shop"

    def __init__(self, sitemap, dsn, reader, took):
        self.sitemap_urls = [sitemap]
        super().__init__()
        self.connection = psycopg.connect(dsn)
        self.reader, self.took, self.rows, self.pages = READERS[reader], took, [], 0
        self.began, self.used = time.perf_counter(), used()

    def parse(self, response):
        self.rows.append((response.url, *self.reader(response)))
        self.pages += 1
        if len(self.rows) >= BATCH:
            self.flush()

    def flush(self):
        with self.connection.cursor() as cursor, cursor.copy(COPY) as copy:
            for row in self.rows:
                copy.write_row(row)
        self.connection.commit()
        self.rows = []

    def closed(self, _reason):
        self.flush()
        self.connection.close()
        seconds = time.perf_counter() - self.began
        self.took |= {"pages": self.pages, "seconds": seconds, "cpu": used() - self.used}


def used():
    mine = resource.getrusage(resource.RUSAGE_SELF)
    return mine.ru_utime + mine.ru_stime


def main(options):
    took = {}
    process = CrawlerProcess(SETTINGS)
    process.crawl(ShopSpider, options["sitemap"], options["dsn"], options["reader"], took)
    process.start()
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
