"""Which of the products a page speaks of is the one it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from extraction.identity import same_page
from extraction.items import Stock, Variant
from extraction.naming import covered
from extraction.readings import Reading

GONE = (Stock.OUT_OF_STOCK, Stock.DISCONTINUED)


def distinct(readings: list[Reading]) -> list[Reading]:
    """One reading for each name; nameless ones are left out."""
    groups: dict[str, list[Reading]] = {}
    for reading in readings:
        if name := reading.text("name").casefold():
            groups.setdefault(name, []).append(reading)
    return [_joined(group) for group in groups.values()]


def _joined(group: list[Reading]) -> Reading:
    """Products of one name are the sizes of one product: what can be bought stands for all."""
    if len(group) == 1:
        return group[0]
    priced = [r for r in group if r.value("price") is not None]
    ready = [r for r in priced if r.value("stock") not in GONE]
    best = next(iter(ready or priced or group))
    rows = tuple(_row(r) for r in priced if r.text("sku"))
    if not best.variants and len({row.key for row in rows}) > 1:
        return replace(best, variants=rows)
    return best


def _row(reading: Reading) -> Variant:
    return Variant(
        key=reading.text("sku"),
        price=reading.value("price"),
        currency=reading.text("currency"),
        stock=reading.value("stock") or Stock.UNKNOWN,
        sku=reading.text("sku"),
        gtin=reading.text("gtin"),
    )


def choose_main(
    readings: list[Reading], url: str, titles: Callable[[], list[str]]
) -> Reading | None:
    """The only one, the one with this address, or the one the page's title names."""
    if len(readings) < 2:
        return readings[0] if readings else None
    own = [r for r in readings if same_page(r.url, url)]
    if len(own) == 1:
        return own[0]
    names = titles()
    scored = sorted(((_named(r, names), r) for r in own or readings), key=lambda e: -e[0])
    (first, best), (second, _) = scored[0], scored[1]
    return best if first >= 0.75 and first > second else None


def _named(reading: Reading, titles: list[str]) -> float:
    name = reading.text("name")
    shares = (covered(name, t) + covered(t, name) / 10 for t in titles if t)
    return max(shares, default=0.0)
