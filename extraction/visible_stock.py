"""Whether the page's own product can be had: what is said near its title and price, and the buy button."""

from __future__ import annotations

from dataclasses import dataclass

from extraction.items import Stock
from extraction.visible_outline import Outline
from extraction.visible_phrases import NEGATION, NOT_THE_PRODUCT, QUANTITY, Phrases
from extraction.visible_prices import Anchors
from extraction.visible_words import ALL_BITS, BITS

# Whose stock a text in such a place speaks of is another question.
ELSEWHERE = BITS["related"] | BITS["slider"] | ALL_BITS["in_option"]
CLOSELY_ELSEWHERE = BITS["tile"] | BITS["chrome"]
ASIDE = BITS["hidden"] | BITS["review"] | BITS["option"] | ALL_BITS["aside"]
STOCK_BIT = BITS["stock"]
# Texts after the title within which the shop speaks of its own product.
NEAR = 160
CARELESS = 0.35
# Said of the product itself it settles the matter, whatever the button says.
FIRM = (Stock.OUT_OF_STOCK, Stock.DISCONTINUED, Stock.PREORDER, Stock.BACKORDER)


@dataclass(frozen=True, slots=True)
class Said:
    """One stock phrase and how much it counts."""

    stock: Stock
    place: int
    phrase: str
    weight: float


@dataclass(frozen=True, slots=True)
class StockReading:
    stock: Stock = Stock.UNKNOWN
    quantity: int | None = None
    raw: str = ""
    confidence: float = 0.0
    element: int = -1


def read_stock(page: Outline, phrases: Phrases, anchors: Anchors, price_place: int) -> StockReading:
    said = [one for one in _heard(page, phrases, anchors, price_place) if one.weight > 0]
    button = _button(page, anchors, price_place)
    votes: dict[Stock, float] = {}
    for one in said:
        votes[one.stock] = max(votes.get(one.stock, 0.0), one.weight)
    if button is not None:
        votes[button] = votes.get(button, 0.0) + 1.0
    if not votes:
        return StockReading()
    best = max(votes, key=lambda stock: (votes[stock], stock in FIRM))
    loudest = max(
        (one for one in said if one.stock is best), key=lambda one: one.weight, default=None
    )
    raw = page.texts[loudest.place] if loudest else "buy button"
    return StockReading(
        best,
        _quantity(phrases, said, best),
        raw,
        min(0.9, 0.4 + 0.15 * votes[best]),
        page.owner(loudest.place) if loudest else -1,
    )


def _heard(page: Outline, phrases: Phrases, anchors: Anchors, price_place: int) -> list[Said]:
    found = []
    for stock, place, phrase in phrases.stocks:
        meant = _meant(stock, phrases.lowered[place], phrase)
        if _is_about(page, phrases.lowered[place], place, meant, phrase):
            weight = _weight(page, anchors, price_place, place, phrase)
            found.append(Said(meant, place, phrase, weight))
    return found


def _is_about(page: Outline, text: str, place: int, stock: Stock, phrase: str) -> bool:
    """Whether a phrase is said of a product, not of its picture, and is no part of another word."""
    if stock is Stock.OUT_OF_STOCK and NOT_THE_PRODUCT.search(text):
        return False
    if phrase.isascii() and len(phrase) <= 5:
        return text.strip(" .!:") == phrase or bool(page.own(page.owner(place)) & STOCK_BIT)
    return True


def _meant(stock: Stock, text: str, phrase: str) -> Stock:
    before = text[: text.find(phrase)]
    if stock is Stock.IN_STOCK and NEGATION.search(before):
        return Stock.OUT_OF_STOCK
    return stock


def _weight(page: Outline, anchors: Anchors, price_place: int, place: int, phrase: str) -> float:
    """Nearness to the title and the price, names, and how much of the text the phrase is."""
    owner = page.owner(place)
    around = page.inherited(owner)
    close = 0
    for one in page.ancestors(owner)[:5]:
        close |= page.own(one)
    weight = 1.0 if _is_near(anchors, price_place, place) else 0.0
    if page.own(owner) & STOCK_BIT or page.own(max(0, page.parent(owner))) & STOCK_BIT:
        weight += 1.0
    weight += len(phrase) / max(len(page.texts[place]), 1)
    if around & ELSEWHERE or close & CLOSELY_ELSEWHERE:
        weight -= 1.5
    if around & ASIDE:
        weight -= CARELESS
    return weight - 0.8


def _is_near(anchors: Anchors, price_place: int, place: int) -> bool:
    if anchors.title >= 0 and anchors.title <= place <= anchors.title + NEAR:
        return True
    return price_place >= 0 and abs(place - price_place) <= 40


def _button(page: Outline, anchors: Anchors, price_place: int) -> Stock | None:
    """A buy button near the price can be pressed or not."""
    near = [cart for cart in anchors.carts if _is_near(anchors, price_place, cart)]
    if not near:
        return None
    # A disabled button says little: many wait for a size to be chosen or for a script.
    return Stock.IN_STOCK if any(_is_enabled(page, page.owner(cart)) for cart in near) else None


def _is_enabled(page: Outline, element: int) -> bool:
    for one in page.ancestors(element)[:3]:
        attributes = page.attributes(one)
        if "disabled" in attributes or attributes.get("aria-disabled") == "true":
            return False
        if "disabled" in (attributes.get("class") or "").split():
            return False
    return True


def _quantity(phrases: Phrases, said: list[Said], best: Stock) -> int | None:
    if best not in (Stock.IN_STOCK, Stock.LIMITED_AVAILABILITY):
        return None
    for one in sorted(said, key=lambda one: -one.weight):
        found = QUANTITY.search(phrases.lowered[one.place])
        if found is not None:
            return int(found.group(1) or found.group(2))
    return None
