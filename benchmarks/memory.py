"""How much memory a worker takes, and whether it stays so: one process fetches and stores
pages that change between slices, as it would over a day."""

from __future__ import annotations

import psutil
from django.conf import settings

from benchmarks.fetch import HOSTS, PURPOSE, crawl
from benchmarks.figures import Figure, figure
from benchmarks.stores import forget_pages
from tests.shop.bulk import BulkShop

GOAL_MB = 250
MB = 1024 * 1024


def measure(*, quick: bool) -> list[Figure]:
    per_slice, pages = (2000, 10_000) if quick else (5000, 100_000)
    settings.PAGE_CONSUMERS = {PURPOSE: "benchmarks.fetch.ignore"}
    process, sizes = psutil.Process(), []
    with BulkShop(products=per_slice, hosts=HOSTS, addresses=True) as shop:
        for _ in range(pages // per_slice):
            forget_pages()
            crawl(shop.urls)
            sizes.append(process.memory_info().rss / MB)
    # Caches and threads fill in the first half; a leak goes on in the second.
    middle, late = sizes[len(sizes) // 2 - 1], sizes[len(sizes) // 2 :]
    return [
        figure("memory of a worker", sizes, "MB", peer=f"goal {GOAL_MB}", against=GOAL_MB),
        figure(
            f"after {pages:,} pages", sizes[-1:], "MB", peer=f"after {pages // 2:,}", against=middle
        ),
        figure("most in the second half", [max(late)], "MB", peer="half way", against=middle),
    ]
