"""Where the title and the buy buttons of a page stand."""

from __future__ import annotations

import re

from extraction.visible_outline import Outline
from extraction.visible_phrases import CART_PHRASES, SHORT, Phrases
from extraction.visible_prices import Anchors
from extraction.visible_words import ALL_BITS, BITS

CART_BIT = BITS["cart"]
# A heading there names a menu, a category or another product.
MENU = BITS["chrome"] | BITS["related"] | BITS["tile"] | ALL_BITS["aside"]
PRESSED = frozenset(["button", "a", "input", "label"])
# A button says little; a longer text only mentions the cart.
BUTTON = 34
# A form with more texts holds the whole page.
FORM = 60
CART_ACTION = re.compile(
    r"cart/add|add[-_]?to[-_]?(?:cart|basket|bag)|addtocart|addcart|cart\.php|/cart\b|/basket|warenkorb|carrito|panier|koszyk|kosik"
)
QUANTITY_NAME = re.compile(
    r"(?:qty|quantity|menge|anzahl|cantidad|quantite|quantita|ilosc|aantal|antal)\b", re.IGNORECASE
)
WORD = re.compile(r"\w{2,}")


def find_anchors(page: Outline, said: Phrases, title: str) -> Anchors:
    return Anchors(title_place(page, title), tuple(sorted(set(_carts(page, said)))))


def title_place(page: Outline, title: str) -> int:
    """The text of the heading that best agrees with the page's title, the first h1 by default."""
    headings = [h for h in page.sought["h1"] if page.texts_in(h)]
    if not headings:
        return _title_text(page, title)
    words = words_of(title)
    agreeing = max(headings[:30], key=lambda h: (len(words & words_of(page.joined(h))), -h))
    if words & words_of(page.joined(agreeing)):
        return page.start(agreeing)
    return page.start(max(headings[:30], key=lambda h: (not page.inherited(h) & MENU, -h)))


def _title_text(page: Outline, title: str) -> int:
    """Without an h1: the first longest text that the page's title repeats."""
    wanted = title.casefold()
    fitting = [
        place
        for place, text in enumerate(page.texts)
        if 8 <= len(text) <= 200 and text.casefold() in wanted
    ]
    return max(fitting, key=lambda place: (len(page.texts[place]), -place), default=-1)


def words_of(text: str) -> set[str]:
    return set(WORD.findall(text[:500].casefold()))


def _carts(page: Outline, said: Phrases) -> list[int]:
    """The texts where something can be put into the cart."""
    last = len(page.texts) - 1
    found = [
        place
        for place, _ in said.carts
        if len(page.texts[place]) <= BUTTON and _is_pressed(page, place)
    ]
    found.extend(
        min(page.start(element), last)
        for element in page.sought["input"]
        if _is_cart_input(page, element)
    )
    found.extend(
        min(page.start(element), last)
        for element in page.sought["form"]
        if CART_ACTION.search((page.attributes(element).get("action") or "").lower())
        and len(page.texts_in(element)) < FORM
    )
    found.extend(
        min(page.start(element), last)
        for element in page.sought["button"]
        if _is_cart_button(page, element)
    )
    found.extend(
        min(page.start(element), last)
        for element in page.sought["select"]
        if page.own(element) & CART_BIT
    )
    return [place for place in found if place >= 0]


def _is_cart_button(page: Outline, element: int) -> bool:
    """By its name, or by its words where they are split over elements."""
    texts = page.texts_in(element)
    if len(texts) > 4:
        return False
    if page.own(element) & CART_BIT:
        return True
    return len(texts) > 1 and len(said := " ".join(texts)) <= BUTTON and _says_cart(said.lower())


def _is_cart_input(page: Outline, element: int) -> bool:
    attributes = page.attributes(element)
    if attributes.get("type") not in ("submit", "button", "image"):
        return bool(QUANTITY_NAME.match(attributes.get("name") or ""))
    label = (attributes.get("value") or attributes.get("alt") or "").lower()
    return bool(page.own(element) & CART_BIT) or _says_cart(label)


def _says_cart(text: str) -> bool:
    return 0 < len(text) <= SHORT and any(phrase in text for phrase in CART_PHRASES)


def _is_pressed(page: Outline, place: int) -> bool:
    """Whether a text stands in something to press, or in something named like it."""
    element = page.owner(place)
    for _ in range(3):
        if element < 0:
            return False
        if page.tag(element) in PRESSED or page.own(element) & CART_BIT:
            return True
        element = page.parent(element)
    return False
