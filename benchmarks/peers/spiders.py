"""Scrapy over the same shop: with extruct and price-parser, and with our own extractor."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from benchmarks.peers.environments import python_of
from tests.shop.bulk import BulkShop

SCRIPT = Path(__file__).with_name("scrapy_shop.py")
READERS = ("extruct", "obsrv")
RUN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Crawl:
    """What a run of the spider took; ``right`` of its pages were read as the shop means them."""

    pages: int
    right: int
    seconds: float
    cpu: float

    @property
    def per_second(self) -> float:
        """Of its CPU; pages that it misread count for it, too."""
        return self.pages / self.cpu


def crawl(shop: BulkShop, reader: str) -> Crawl:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bench_scrapy")
        cursor.execute(
            "CREATE TABLE bench_scrapy (url text, price numeric, currency text, stock text)"
        )
    options = {"sitemap": f"{shop.hosts[0]}/sitemap.xml", "dsn": _dsn(), "reader": reader}
    done = subprocess.run(
        [str(python_of("scrapy")), str(SCRIPT), json.dumps(options)],
        env={**os.environ, "PYTHONPATH": str(settings.BASE_DIR)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    took: dict[str, Any] = json.loads(done.stdout)
    return Crawl(took["pages"], _right(shop), took["seconds"], took["cpu"])


def _dsn() -> str:
    given = connection.get_connection_params()
    names = {"dbname": "dbname", "user": "user", "password": "password", "host": "host"}
    names["port"] = "port"
    return " ".join(f"{name}={given[key]}" for key, name in names.items() if given.get(key))


def _right(shop: BulkShop) -> int:
    truths = {shop.url(n): shop.truth(n) for n in range(len(shop.catalogue))}
    with connection.cursor() as cursor:
        cursor.execute("SELECT url, price, currency, stock FROM bench_scrapy")
        rows: list[tuple[str, Decimal, str, str]] = cursor.fetchall()
    return sum(
        (price, currency, stock)
        == (truths[url].price, truths[url].currency, truths[url].availability)
        for url, price, currency, stock in rows
    )
