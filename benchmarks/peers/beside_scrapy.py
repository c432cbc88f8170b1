"""Our pipeline and Scrapy by turns over the same re-priced shop; ratios are of pages for each
second of CPU. Scrapy does less: it compares nothing, tells nobody and keeps no page."""

from __future__ import annotations

import statistics
from collections import defaultdict

from benchmarks.figures import Figure, figure, note
from benchmarks.peers import spiders
from benchmarks.peers.environments import Unavailable, python_of, version_of
from benchmarks.pipeline import Turn, watched
from benchmarks.stores import forget_conditions, forget_pages
from tests.shop.bulk import BulkShop
from tests.shop.bulk_pages import TYPICAL

# What issue 5 asks for.
GOALS = {"extruct": 10, "obsrv": 5}
NAMES = {"extruct": "extruct + COPY", "obsrv": "our extractor + COPY"}


def measure(*, quick: bool) -> list[Figure]:
    try:
        version = version_of(python_of("scrapy"), "scrapy")
    except Unavailable as reason:
        return [note("Scrapy", f"cannot be installed here: {reason}")]
    products, rounds = (500, 3) if quick else (2000, 5)
    ours: list[Turn] = []
    plain: list[Turn] = []
    theirs: dict[str, list[spiders.Crawl]] = defaultdict(list)
    with watched(BulkShop(products=products, fill=TYPICAL)) as bench:
        bench.run()
        for number in range(rounds):
            readers = spiders.READERS if number % 2 else spiders.READERS[::-1]
            ours.append(bench.turn(forget_pages))
            plain.append(bench.turn(forget_conditions))
            for reader in readers:
                theirs[reader].append(spiders.crawl(bench.shop, reader))
    return [
        row
        for reader in spiders.READERS
        for row in rows(version, reader, ours, plain, theirs[reader])
    ]


def rows(
    version: str, reader: str, ours: list[Turn], plain: list[Turn], theirs: list[spiders.Crawl]
) -> list[Figure]:
    name, goal = f"Scrapy {version}, {NAMES[reader]}", GOALS[reader]
    rates = [its.per_second for its in theirs]
    right = [its.right for its in theirs]

    def ratio(words: str, turns: list[Turn]) -> Figure:
        ratios = [mine.per_second / rate for mine, rate in zip(turns, rates, strict=True)]
        return figure(words, ratios, "×", peer=f"goal {goal}", against=goal)

    return [
        ratio(f"times {name}", ours),
        ratio("  where 90 % have the same bytes", plain),
        figure(
            "  its rate", rates, "pages/s/core", peer="itself", against=statistics.median(rates)
        ),
        figure("  its pages read right", right, "pages", peer="its pages", against=theirs[0].pages),
    ]
