"""Places on a domain's pages that agree with its structured data, kept for the day it vanishes.

Pure: the caller stores what ``learn_places`` returns and hands it back in ``Hints.learned``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction.items import LearnedPlace, Method, ProductItem
from extraction.naming import alike
from extraction.numbers import parse_price
from extraction.readings import Reading
from extraction.sites.rules import select
from extraction.texts import clean

# Agreed on so many pages, and hardly ever wrong, a place may speak when the data is silent.
TRUSTED_AFTER = 3
WRONG_SHARE = 0.1
MOST_ELEMENTS = 20_000
MOST_CANDIDATES = 30
LONGEST_TEXT = 40
# Names with numbers in them belong to one product, not to the template.
STABLE = re.compile(r"[A-Za-z_][A-Za-z_-]{1,40}\Z")
STRUCTURED = (Method.JSON_LD, Method.MICRODATA, Method.RDFA, Method.OPENGRAPH, Method.EMBEDDED)
NAMED = ("h1", "h2", "[itemprop=name]")


def learn_places(tree: LexborHTMLParser, item: ProductItem) -> tuple[LearnedPlace, ...]:
    """Where this page shows what its structured data says; nothing when it does not."""
    places = []
    price = item.fields.get("price")
    if price is not None and price.source in STRUCTURED:
        places.append(_place("price", tree, _price_elements(tree, price.value)))
    name = item.fields.get("name")
    if name is not None and name.source in STRUCTURED:
        elements = [e for css in NAMED for e in select(tree, css) if _text(e) == item.name]
        places.append(_place("name", tree, iter(elements)))
    return tuple(place for place in places if place is not None)


def merge_places(
    known: tuple[LearnedPlace, ...], seen: tuple[LearnedPlace, ...], *, most: int = 8
) -> tuple[LearnedPlace, ...]:
    """What was known with what one more page shows: its agreements and disagreements added."""
    rows = {(p.name, p.selector): p for p in known}
    for place in seen:
        old = rows.get((place.name, place.selector))
        rows[(place.name, place.selector)] = place if old is None else replace(
            old, agreed=old.agreed + place.agreed, disagreed=old.disagreed + place.disagreed
        )  # fmt: skip
    ranked = sorted(rows.values(), key=lambda p: p.disagreed - p.agreed)
    return tuple(ranked[:most])


def check_places(
    tree: LexborHTMLParser, known: tuple[LearnedPlace, ...], item: ProductItem
) -> tuple[LearnedPlace, ...]:
    """One agreement or disagreement for each known place this page has."""
    verdicts = []
    for place in known:
        truth = item.fields.get(place.name)
        said = _read_place(tree, place, item.currency)
        if truth is None or truth.source not in STRUCTURED or said is None:
            continue
        right = _same(said, truth.value)
        verdicts.append(replace(place, agreed=int(right), disagreed=int(not right)))
    return tuple(verdicts)


def trusted(place: LearnedPlace) -> bool:
    seen = place.agreed + place.disagreed
    return place.agreed >= TRUSTED_AFTER and place.disagreed <= seen * WRONG_SHARE


def read_learned(
    tree: LexborHTMLParser, places: tuple[LearnedPlace, ...], currency: str
) -> Reading:
    """What the trusted places say; two that differ say nothing."""
    reading = Reading(Method.LEARNED)
    said: dict[str, list[tuple[Decimal | str, LearnedPlace]]] = {}
    for place in filter(trusted, places):
        value = _read_place(tree, place, currency)
        if value is not None:
            said.setdefault(place.name, []).append((value, place))
    for name, found in said.items():
        value, place = found[0]
        if all(_same(value, other) for other, _ in found):
            reading.put(name, value, str(value), place.selector)
    return reading


def _read_place(tree: LexborHTMLParser, place: LearnedPlace, currency: str) -> Decimal | str | None:
    for element in select(tree, place.selector)[:1]:
        text = element.attributes.get(place.attribute) if place.attribute else _text(element)
        if not text:
            return None
        return (
            parse_price(text, currency_hint=currency or None).amount
            if place.name == "price"
            else text
        )
    return None


def _same(one: Decimal | str, other: Decimal | str) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return alike(one, other)
    return one == other


def _price_elements(tree: LexborHTMLParser, price: Decimal) -> Iterator[LexborNode]:
    """The smallest elements whose whole text is this price."""
    digits = f"{int(price)}"
    candidates = 0
    for element in tree.css("body *")[:MOST_ELEMENTS]:
        if element.tag in ("script", "style", "del", "s", "strike", "option"):
            continue
        own = element.text(deep=False)
        if not own or digits[:1] not in own:
            continue
        text = _text(element)
        if len(text) <= LONGEST_TEXT and parse_price(text).amount == price:
            candidates += 1
            yield element
        if candidates >= MOST_CANDIDATES:
            return


def _place(
    name: str, tree: LexborHTMLParser, elements: Iterator[LexborNode]
) -> LearnedPlace | None:
    """The first element that a stable selector finds before any other."""
    for element in elements:
        for selector in _selectors(element):
            found = select(tree, selector)
            if found and found[0].mem_id == element.mem_id:
                return LearnedPlace(name, selector)
    return None


def _selectors(element: LexborNode) -> Iterator[str]:
    own = _step(element)
    if own.startswith(("#", ".")) or "." in own or "#" in own:
        yield own
    path, parent = own, element.parent
    for _ in range(4):
        if parent is None or parent.tag in ("body", "html", "-undef"):
            return
        path = f"{_step(parent)} > {path}"
        yield path
        parent = parent.parent


def _step(element: LexborNode) -> str:
    attributes = element.attributes
    name = attributes.get("id") or ""
    if STABLE.match(name):
        return f"#{name}"
    classes = [c for c in (attributes.get("class") or "").split() if STABLE.match(c)][:3]
    return (element.tag or "*") + "".join(f".{c}" for c in classes)


def _text(element: LexborNode) -> str:
    return clean(element.text(deep=True), 500)
