"""Microdata and RDFa: products written into the elements of the page, as schema.org nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction.texts import Node, clean

# Pages with more marked elements than this are lists or attacks.
MOST_ELEMENTS = 5000
MOST_PARENTS = 200


@dataclass(frozen=True, slots=True)
class Syntax:
    """Which attributes open an item, give its type and name a property."""

    scope: str
    kind: str
    prop: str


MICRODATA = Syntax("itemscope", "itemtype", "itemprop")
RDFA = Syntax("typeof", "typeof", "property")
LINKS = {
    "a": "href",
    "link": "href",
    "area": "href",
    "img": "src",
    "source": "src",
    "iframe": "src",
}
VALUES = {"data": "value", "meter": "value", "time": "datetime", "object": "data", "input": "value"}
# GoodRelations, the shop vocabulary before schema.org, in its words.
OLD_WORDS = {
    "hascurrencyvalue": "price",
    "hascurrency": "priceCurrency",
    "haspricespecification": "priceSpecification",
    "hasean_ucc-13": "gtin13",
    "hasstockkeepingunit": "sku",
    "offering": "Product",
}


# What a product says of itself where its item was never opened.
LOOSE = ("name", "price", "priceCurrency", "availability", "sku", "gtin13", "brand")


def marked(tree: LexborHTMLParser, syntax: Syntax) -> list[LexborNode]:
    """The elements that open an item or name a property."""
    return tree.css(f"[{syntax.scope}], [{syntax.prop}]")[:MOST_ELEMENTS]


def read_items(elements: list[LexborNode], syntax: Syntax) -> list[Node]:
    """The items of the page that belong to no other item, nested ones inside them."""
    items: dict[int, Node] = {}
    roots: list[Node] = []
    for element in elements:
        attributes = element.attributes
        value: Any = None
        if syntax.scope in attributes:
            value = items[element.mem_id] = {"@type": _types(attributes.get(syntax.kind) or "")}
        names = _names(attributes.get(syntax.prop) or "")
        owner = _owner(element, items, syntax) if names else None
        if owner is not None:
            value = _value(element, attributes) if value is None else value
            _add(owner, names, value)
        elif value is not None:
            roots.append(value)
    return roots


def loose_product(elements: list[LexborNode]) -> Node | None:
    """Properties of a product whose item was never opened: read when each is said once."""
    found: dict[str, list[LexborNode]] = {name: [] for name in LOOSE}
    for element in elements:
        same = found.get(element.attributes.get("itemprop") or "")
        if same is not None and len(same) < 5:
            same.append(element)
    node: Node = {}
    for name, elements in found.items():
        values = {v for e in elements if (v := _value(e, e.attributes)) and isinstance(v, str)}
        if len(values) == 1:
            node[name] = values.pop()
    if "price" not in node or "name" not in node:
        return None
    return {"@type": ["Product"], "name": node.pop("name"), "offers": node, **node}


def _types(text: str) -> list[str]:
    words = (word.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1] for word in text.split())
    return [OLD_WORDS.get(word.lower(), word) for word in words]


def _names(text: str) -> list[str]:
    words = (word.rsplit("/", 1)[-1].rsplit(":", 1)[-1] for word in text.split())
    return [OLD_WORDS.get(word.lower(), word) for word in words]


def _owner(element: LexborNode, items: dict[int, Node], syntax: Syntax) -> Node | None:
    for parent in _parents(element):
        if parent.mem_id in items:
            return items[parent.mem_id]
    return None


def _parents(element: LexborNode) -> Iterator[LexborNode]:
    parent = element.parent
    for _ in range(MOST_PARENTS):
        if parent is None:
            return
        yield parent
        parent = parent.parent


def _value(element: LexborNode, attributes: dict[str, str | None]) -> str:
    if content := attributes.get("content"):
        return content
    tag = element.tag or ""
    if (key := LINKS.get(tag) or VALUES.get(tag)) and attributes.get(key):
        return attributes[key] or ""
    if tag == "meta":
        return ""
    return clean(element.text(deep=True, separator=" "), 5000)


def _add(owner: Node, names: list[str], value: Any) -> None:
    if value in ("", None):
        return
    for name in names:
        if name not in owner:
            owner[name] = value
        elif isinstance(owner[name], list):
            owner[name].append(value)
        else:
            owner[name] = [owner[name], value]
