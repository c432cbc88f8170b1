"""The price-like places of a page and what speaks for each: features are named numbers, weights are data."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache

from extraction.numbers import TIMES, Kind, Price, amounts
from extraction.visible_outline import Outline
from extraction.visible_words import ALL_BITS, BITS

DIGIT = re.compile(r"\d")
# Signs and short names that make a text worth a closer look.
SIGN = re.compile(
    r"[€$£￡¥￥₹₽₴₪₩₫₱₺₸₦₲₡₼₾฿円元원đ﷼]|(?i:\b(?:eur|usd|gbp|chf|cad|aud|nzd|sek|nok|dkk|pln|czk|huf|ron|try|tl|brl|mxn"
    r"|inr|rs|rm|rp|zł|kč|ft|lei|лв|руб|грн|тг|kr|zar|sgd|hkd|aed|sar|nt|din|ден|kn|km|fr|р)\b)|\dр\b|تومان|ریال|ر\.س|درهم",
)
# A text that is one amount with at most a currency around it.
WHOLE = re.compile(r"\D{0,8}\d[\d.,'’\s]*(?:[.,]?[-–—])?\D{0,8}\Z")
LONGEST = 120
SPAN = 48
LEVELS = 4
NOT_A_PRICE = ("own_old", "own_struck", "own_saving", "own_shipping", "own_instalment", "zero")
PRICE = BITS["price"]
OLD = ("own_old", "own_struck", "near_struck")
# A page with more price-like texts is a list; the rest would not change that.
MOST = 400


@dataclass(slots=True)
class Anchors:
    """The texts a price should stand near: the title's and the buy buttons'; -1 for none."""

    title: int = -1
    carts: tuple[int, ...] = ()


@dataclass(slots=True)
class Candidate:
    element: int
    # Where its first text stands among the page's texts.
    place: int
    text_place: int
    text: str
    price: Price
    features: dict[str, float] = field(default_factory=dict)
    score: float = 0.0

    @property
    def amount(self) -> Decimal:
        assert self.price.amount is not None
        return self.price.amount


def price_candidates(page: Outline, anchors: Anchors, home: str) -> list[Candidate]:
    found = list(_find(page, home))
    _measure(page, found, anchors)
    return found


def _find(page: Outline, home: str) -> Iterator[Candidate]:
    seen: set[int] = set()
    count = 0
    has_digit = DIGIT.search
    places = [
        place
        for place, text in enumerate(page.texts)
        if len(text) <= LONGEST and has_digit(text) is not None
    ]
    for place in places:
        text = page.texts[place]
        if not SIGN.search(text) and not _named_price(page, place):
            continue
        element, whole = _whole(page, place, text)
        if element in seen:
            continue
        seen.add(element)
        price = _best_amount(page, element, place, whole, home)
        if price is not None:
            start = page.start(element) if whole != text else place
            yield Candidate(element, start, place, whole, price)
            count += 1
            if count >= MOST:
                return


def _named_price(page: Outline, place: int) -> bool:
    """Whether an element closely around a text is called a price."""
    around = page.ancestors(page.text_nodes[place])[1:4]
    return any(page.own(element) & PRICE for element in around)


def _whole(page: Outline, place: int, text: str) -> tuple[int, str]:
    """The widest element around a text that is still one amount: `<b>19</b><sup>99</sup>` is 19.99."""
    around = page.ancestors(page.text_nodes[place])
    best = (around[1], text)
    for element in around[1 : 1 + LEVELS]:
        start, end = page.span(element)
        if end - start > 8:
            break
        joined = text if end - start == 1 else assemble(page.texts[start:end])
        if len(joined) > SPAN:
            break
        if WHOLE.match(joined):
            best = (element, joined)
    return best


def assemble(pieces: list[str]) -> str:
    """Pieces of a price to one text; two digits after whole digits are cents."""
    text = ""
    for piece in pieces:
        if text[-1:].isdigit() and piece[:1].isdigit():
            text += (
                "." + piece
                if len(piece.rstrip("*")) == 2 and not CENTS.search(text)
                else " " + piece
            )
        elif (text[-1:].isdigit() and piece[:1] in ".,") or (
            text[-1:] in ".," and piece[:1].isdigit()
        ):
            text += piece
        else:
            text += " " + piece if text else piece
    return text


CENTS = re.compile(r"[.,]\d\d\Z")


def _best_amount(page: Outline, element: int, place: int, text: str, home: str) -> Price | None:
    """The amount of a text, its kind judged with the words around it."""
    before, after = _neighbours(page, element)
    found = [
        p for p in amounts(f"{before} {text} {after}".strip(), hint=home) if p.amount is not None
    ]
    if not found:
        return None
    best = min(found, key=lambda price: price.kind)
    return replace(best, kind=Kind.SAVING) if text[0] in "-–−" else best


def _neighbours(page: Outline, element: int) -> tuple[str, str]:
    """The short texts just before and after, if they stand in the same small block."""
    start, end = page.span(element)
    first, behind = page.span(page.ancestors(element)[:3][-1])
    before = page.texts[start - 1] if start > first else ""
    after = page.texts[end] if end < behind else ""
    return _label(before), _label(after)


def _label(text: str) -> str:
    if TIMES.search(text[-40:]):
        return text[-40:]
    return "" if len(text) > 30 or DIGIT.search(text) else text


def _measure(page: Outline, found: list[Candidate], anchors: Anchors) -> None:
    """The features of every candidate; each a number of about 0 to 1."""
    shapes = [_shape(page, one.element) for one in found]
    shape_counts = Counter(shapes)
    amount_counts = Counter(one.amount for one in found)
    after_title = 0
    for one, shape in zip(found, shapes, strict=True):
        features = one.features
        _add_words(page, one, features)
        _add_text(one, features)
        _add_nearness(page, one, anchors, features)
        features["same_shape"] = min(1.0, math.log(shape_counts[shape]) / 3)
        features["same_amount"] = min(1.0, math.log(amount_counts[one.amount]) / 2)
        if one.place > anchors.title >= 0:
            features["order_after_title"] = 1 / (1 + after_title)
            after_title += _could_be(one)
    _add_rivals(page, found)


def _could_be(one: Candidate) -> bool:
    """Whether nothing on the candidate itself says that it is another amount."""
    return one.price.kind <= Kind.PLAIN and not any(name in one.features for name in NOT_A_PRICE)


def _shape(page: Outline, element: int) -> tuple[tuple[str, int], ...]:
    return tuple([(page.tag(one), page.own(one)) for one in page.ancestors(element)[:4]])


def _add_words(page: Outline, one: Candidate, features: dict[str, float]) -> None:
    """Names on the price itself, close around it, and further out."""
    own = near = 0
    for inner in page.ancestors(page.text_nodes[one.text_place])[1:]:
        if inner < one.element:
            break
        own |= page.own(inner)
    line = page.ancestors(one.element)
    for outer in line[1:LEVELS]:
        near |= page.own(outer)
    far = page.inherited(line[LEVELS]) if len(line) > LEVELS else 0
    for distance, bits in (("own", own), ("near", near), ("far", far)):
        features.update(_named(distance, bits))


@lru_cache(maxsize=4_000)
def _named(distance: str, bits: int) -> dict[str, float]:
    return {f"{distance}_{name}": 1.0 for name, bit in ALL_BITS.items() if bits & bit}


def _add_text(one: Candidate, features: dict[str, float]) -> None:
    if one.price.kind is not Kind.PLAIN:
        features["kind_" + one.price.kind.name.lower()] = 1.0
    if one.price.symbol:
        features["has_currency"] = 1.0
    if one.amount == 0:
        features["zero"] = 1.0
    if one.amount % 1:
        features["has_cents"] = 1.0
    features["extra_text"] = min(1.0, max(0, len(one.text) - 12) / 60)


def _add_nearness(
    page: Outline, one: Candidate, anchors: Anchors, features: dict[str, float]
) -> None:
    if anchors.title >= 0:
        distance = one.place - anchors.title
        features["after_title" if distance > 0 else "before_title"] = 1.0
        features["title_distance"] = min(1.0, math.log1p(abs(distance)) / 6)
        features["title_block"] = _block_share(page, one.element, anchors.title)
    else:
        features["no_title"] = 1.0
    if anchors.carts:
        cart = _nearest(anchors.carts, one.place)
        features["cart_distance"] = min(1.0, math.log1p(abs(one.place - cart)) / 6)
        features["cart_block"] = _block_share(page, one.element, cart)
        first = anchors.carts[0]
        features["first_cart_distance"] = min(1.0, math.log1p(abs(one.place - first)) / 6)
    else:
        features["no_cart"] = 1.0


def _nearest(places: tuple[int, ...], place: int) -> int:
    """Of places in order; the earlier of two that are as near."""
    index = bisect_left(places, place)
    return min(places[max(0, index - 1) : index + 1], key=lambda other: abs(other - place))


def _block_share(page: Outline, element: int, place: int) -> float:
    """How small the block around both is: near 0 when they share a small one, 1 for the whole page."""
    total = max(2, len(page.texts))
    around = page.around(place)
    for one in page.ancestors(element):
        if one in around:
            start, end = page.span(one)
            return math.log(end - start) / math.log(total)
    return 1.0


def _add_rivals(page: Outline, found: list[Candidate]) -> None:
    """How a candidate stands to the others close by: the lower of two is the sale price."""
    for index, one in enumerate(found):
        near = [
            other
            for other in found[max(0, index - 2) : index + 3]
            if other is not one and abs(other.place - one.place) <= 6 and other.amount != one.amount
        ]
        if any(other.amount > one.amount for other in near):
            one.features["lower_than_neighbour"] = 1.0
        if any(other.amount < one.amount for other in near):
            one.features["higher_than_neighbour"] = 1.0
        if not near:
            one.features["alone"] = 1.0
        if any(_is_old(other) and other.amount > one.amount for other in near):
            one.features["beside_old"] = 1.0


def _is_old(one: Candidate) -> bool:
    return one.price.kind is Kind.WAS or any(name in one.features for name in OLD)
