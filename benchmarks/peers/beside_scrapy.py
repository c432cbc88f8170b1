"""Our pipeline and Scrapy by turns over the same re-priced shop; ratios are of pages for each
second of CPU. Scrapy does less: it compares nothing, tells nobody and keeps no page."""

from __future__ import annotations

import statistics
from collections import defaultdict

from benchmarks.figures import Figure, figure, note
from benchmarks.peers import spiders
from benchmarks.peers.environments import Unavailable, python_of, version_of
from benchmarks.pipeline import CHANGED, Turn, Watched, watched
from benchmarks.stores import forget_pages
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
    theirs: dict[str, list[spiders.Crawl]] = defaultdict(list)
    with watched(BulkShop(products=products, fill=TYPICAL)) as bench:
        bench.run()
        for number in range(rounds):
            readers = spiders.READERS if number % 2 else spiders.READERS[::-1]
            ours.append(turn(bench))
            for reader in readers:
                theirs[reader].append(spiders.crawl(bench.shop, reader))
    return [
        row
        for reader in spiders.READERS
        for row in rows(f"Scrapy {version}, {NAMES[reader]}", GOALS[reader], ours, theirs[reader])
    ]


def turn(bench: Watched) -> Turn:
    changed = bench.shop.reprice(CHANGED)
    forget_pages()
    return bench.run(changed)


def rows(name: str, goal: int, ours: list[Turn], theirs: list[spiders.Crawl]) -> list[Figure]:
    ratios = [mine.per_second / its.per_second for mine, its in zip(ours, theirs, strict=True)]
    rates = [its.per_second for its in theirs]
    return [
        figure(f"times {name}", ratios, "×", peer=f"goal {goal}", against=goal),
        figure(
            "  its rate", rates, "pages/s/core", peer="itself", against=statistics.median(rates)
        ),
        figure(
            "  its pages read right",
            [its.right for its in theirs],
            "pages",
            peer="its pages",
            against=theirs[0].pages,
        ),
    ]
