"""The product's name, article number and GTIN as the page shows them."""

from __future__ import annotations

import re

from extraction.texts import words
from extraction.visible_anchors import words_of
from extraction.visible_outline import Outline
from extraction.visible_phrases import Phrases
from extraction.visible_prices import Anchors
from extraction.visible_words import ALL_BITS, BITS

SKU_LABEL = re.compile(
    r"(?:sku|item\s*(?:no|number|num|code|id|#)|art(?:icle|ikel|\.)?[\s.-]*(?:nr|no|number|nummer|num|id)|artikel|model(?:\s*(?:no|number|#|code))?|product\s*(?:code|id|no|number|#)"
    r"|mpn|part\s*(?:no|number|#)|style\s*(?:no|number|#|code)?|ref(?:erence|erencia|\.)?|réf(?:érence|\.)?|c[oó]d(?:igo|ice|\.)?(?:\s*(?:do|de|del)?\s*(?:produto|producto|art\w*))?"
    r"|codice(?:\s*(?:articolo|prodotto))?|kód(?:\s*(?:produktu|zboží))?|kod(?:\s*produktu)?|nr\s*(?:kat|produktu|art)\w*|cikkszám|artikelnummer|varenummer|varenr|produktnummer|tuotenumero|tuotekoodi"
    r"|артикул|код(?:\s*товара)?|производитель код|商品番号|品番|型番|商品编号|货号|商品編號|貨號|品號|상품번호|toote\s*kood|prekės kodas|produkta kods|asin|isbn|catalog\s*(?:no|number|#)|best(?:ell)?[\s.-]*nr)"
    r"\s*[.:#：№]*\s*",
    re.IGNORECASE,
)  # fmt: skip
SKU_VALUE = re.compile(r"[#\s]*([A-Za-z0-9][\w./+-]{1,39})\s*\Z", re.ASCII)
# The first two letters of each of these, so that other texts need no closer look.
SKU_BEGINNINGS = words(
    "sk it ar mo pr mp pa st re ré co có kó ko nr ci va tu ар ко пр 商品 品番 型番 货号 貨號 品號 상품"
    " to as is ca be"
)
GTIN_WORDS = ("ean", "gtin", "upc", "isbn", "barcode", "jan", "штрихкод", "čárový kód")
GTIN_LABEL = re.compile(r"\b(?:ean|gtin|upc|isbn|barcode|jan|штрихкод|čárový kód)(?:[-\s]?1[0-4]|[-\s]?8)?(?:\s*(?:code|kód|kod|no|number))?\b\s*[.:#：]*\s*", re.IGNORECASE)  # fmt: skip
GTIN_VALUE = re.compile(r"\b(\d[\d\s-]{6,16}\d)\b", re.ASCII)
TITLE_PARTS = re.compile(r"\s+[|–—·:»«-]\s+|\s*[|»«]\s*")
ELSEWHERE = BITS["related"] | BITS["tile"] | BITS["slider"] | ALL_BITS["in_option"]
LONGEST_NAME = 500
LONGEST_LABEL = 80


def read_name(page: Outline, anchors: Anchors, title: str) -> tuple[str, int]:
    """The heading the page's title agrees with, else the title's own best part; with its element."""
    heading, element = _heading(page, anchors)
    title = " ".join(title.split())
    if heading and (not title or words_of(heading) & words_of(title)):
        return heading, element
    parts = [part for part in TITLE_PARTS.split(title) if part.strip()]
    if parts and (not heading or len(heading) < 4):
        return max(parts[:2], key=len)[:LONGEST_NAME], -1
    return heading, element


def _heading(page: Outline, anchors: Anchors) -> tuple[str, int]:
    if anchors.title < 0:
        return "", -1
    for element in page.ancestors(page.owner(anchors.title)):
        if page.tag(element) == "h1":
            return " ".join(page.joined(element).split())[:LONGEST_NAME], element
    owner = page.owner(anchors.title)
    return " ".join(page.texts[anchors.title].split())[:LONGEST_NAME], owner


def read_sku(page: Outline, said: Phrases, anchors: Anchors) -> tuple[str, int]:
    """The labelled article number nearest to the title."""
    found = []
    for place, lowered in enumerate(said.lowered):
        if lowered[:2] not in SKU_BEGINNINGS:
            continue
        text = page.texts[place]
        label = SKU_LABEL.match(text)
        if label is None or len(text) > LONGEST_LABEL:
            continue
        value = _value_after(page, place, text[label.end() :], SKU_VALUE)
        if value and any(letter.isdigit() for letter in value) and not _is_elsewhere(page, place):
            found.append((abs(place - max(anchors.title, 0)), place, value))
    if not found:
        return "", -1
    _, place, value = min(found)
    return value, page.owner(place)


def read_gtin(page: Outline, said: Phrases) -> tuple[str, int]:
    for place in sorted({place for word in GTIN_WORDS for place in said.places_of(word)}):
        text = page.texts[place]
        label = GTIN_LABEL.search(text, 0, 40)
        if label is None or label.start() > 12 or len(text) > LONGEST_LABEL:
            continue
        value = re.sub(r"\D", "", _value_after(page, place, text[label.end() :], GTIN_VALUE))
        if is_gtin(value) and not _is_elsewhere(page, place):
            return value, page.owner(place)
    return "", -1


def _value_after(page: Outline, place: int, rest: str, shape: re.Pattern[str]) -> str:
    """The value behind a label, in the same text or the next one of a small block."""
    if rest.strip():
        found = shape.match(rest)
        return found.group(1) if found is not None else ""
    if place + 1 >= len(page.texts):
        return ""
    block = page.owner(place)
    for _ in range(3):
        if page.parent(block) >= 0:
            block = page.parent(block)
    if place + 1 >= page.span(block)[1]:
        return ""
    found = shape.match(page.texts[place + 1])
    return found.group(1) if found is not None else ""


def _is_elsewhere(page: Outline, place: int) -> bool:
    return bool(page.inherited(page.owner(place)) & ELSEWHERE)


def is_gtin(digits: str) -> bool:
    """Eight, twelve, thirteen or fourteen digits whose check digit is right."""
    if len(digits) not in (8, 12, 13, 14) or not digits.isascii() or not digits.isdigit():
        return False
    if len(set(digits)) == 1:
        return False
    weighted = (int(d) * (3 if place % 2 else 1) for place, d in enumerate(reversed(digits)))
    return sum(weighted) % 10 == 0
