"""The short way: JSON-LD, or else the head, that leaves no doubt is believed without building
the page's tree."""

from __future__ import annotations

import re
from decimal import Decimal

from extraction.choosing import distinct
from extraction.items import Method, ProductItem
from extraction.markup import parser_of, read_graph_products, settle_currency
from extraction.merging import build_item, identify
from extraction.opengraph import calls_itself_product, read_opengraph
from extraction.pages import Page
from extraction.readings import Reading
from extraction.texts import words

# Pages about something else may still carry a Product; there the markup alone is no proof.
OTHER_SUBJECTS = words(
    "article newsarticle blogposting recipe jobposting event discussionforumposting qapage"
    " itemlist collectionpage searchresultspage review"
)
NEEDED = ("name", "currency", "stock")
NAMES = {Method.JSON_LD: "JSON-LD", Method.OPENGRAPH: "OpenGraph"}
# What stands before a price that is no longer asked.
STRUCK = re.compile(
    rb"<(?:del|s|strike)\b|\b(?:was|old|rrp|msrp|uvp|before)\b|(?:old|was|list|regular)[-_]?price"
    rb"|compare|line-through|crossed|strike",
    re.IGNORECASE,
)
# A price right behind one of these is a value of data or part of a larger number, not text.
DATA = tuple(bytes([c]) for c in b"\"':,.=\\0123456789")
LOOK_BACK = 90
LOOKS = 12


def read_sure(page: Page) -> ProductItem | None:
    """One product, everything said of it, its price seen on the page and nowhere struck out."""
    if page.hints.parser_name != "generic" or page.hints.options:
        return None
    if page.graph.types & OTHER_SUBJECTS:
        return None
    found = _in_graph(page) if page.graph.products else _in_head(page)
    if len(found) != 1 or not says_all(found[0]) or not shown(found[0].value("price"), page.body):
        return None
    return build_item(
        found[0].fields,
        readings=found,
        url=page.url,
        reason=f"{NAMES[found[0].method]} names one product with price, currency and stock",
        breadcrumb=page.graph.breadcrumb,
        canonical=page.canonical,
    )


def _in_graph(page: Page) -> list[Reading]:
    return distinct(read_graph_products(page.graph, page, Method.JSON_LD))


def _in_head(page: Page) -> list[Reading]:
    """What the head says, where no other markup and no software of shops speaks."""
    if page.is_marked_up or not calls_itself_product(page.meta):
        return []
    if parser_of(page).name != "generic":
        return []
    reading = read_opengraph(page.meta, page.url)
    settle_currency(reading, page)
    identify(reading.fields, page.url)
    return [reading]


def says_all(reading: Reading) -> bool:
    return bool(reading.value("price")) and all(reading.value(name) for name in NEEDED)


def shown(price: Decimal, body: bytes) -> bool:
    """Whether the digits of a price stand in the page's text, the first time not as an old price."""
    for form in forms(price):
        position, looks = 0, LOOKS
        while looks and (position := body.find(form, position)) >= 0:
            looks -= 1
            before = body[max(0, position - LOOK_BACK) : position]
            position += len(form)
            if not before.endswith(DATA) and not body[position : position + 1].isdigit():
                return STRUCK.search(before) is None
    return False


def forms(price: Decimal) -> tuple[bytes, ...]:
    """A price as pages write it: with point, comma and thousands, cents or none."""
    whole, cents = divmod(price, 1)
    digits, grouped = f"{whole:f}", f"{whole:,f}"
    tail = f"{cents:.2f}"[2:]
    texts = {f"{digits}.{tail}", f"{digits},{tail}", f"{grouped}.{tail}"}
    texts.add(f"{grouped.replace(',', '.')},{tail}")
    if not cents and len(digits) > 2:
        texts |= {digits, grouped, grouped.replace(",", ".")}
    # With a point first: most pages write so, and each form that is missing costs a whole look.
    return tuple(text.encode() for text in sorted(texts, key=lambda text: ("," in text, text)))
