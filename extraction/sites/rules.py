"""What a site parser is: rules as data, a version, and code only where rules do not reach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction.identity import read_gtin
from extraction.items import Hints, Method, Variant
from extraction.numbers import parse_price
from extraction.readings import Reading
from extraction.stock import read_quantity, read_stock
from extraction.texts import clean

# The first class or id in the last step of a selector.
VALUES = re.compile(r"\[[^\]]*\]|\([^)]*\)")
TARGET = re.compile(r"[#.]([\w-]+)[^\s>+~]*\Z")
MONEY = ("price", "list_price", "unit_price")


@dataclass(frozen=True, slots=True)
class Rule:
    """Where one field stands; of several rules for a field the first that reads a value counts."""

    name: str
    selector: str
    # Empty: the text of the element.
    attribute: str = ""
    # For a state of stock: what the place means by being there at all.
    means: str = ""
    # Kept of the text: the first group of this pattern.
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Parser:
    name: str
    version: str
    description: str
    rules: tuple[Rule, ...] = ()
    hosts: str = ""
    marks: tuple[bytes, ...] = ()
    variants: Callable[[LexborHTMLParser], tuple[Variant, ...]] | None = field(default=None)

    def recognises(self, host: str, body: bytes) -> bool:
        if self.hosts and re.search(self.hosts, host):
            return True
        return any(mark in body for mark in self.marks)


def read_rules(parser: Parser, tree: LexborHTMLParser, hints: Hints, currency: str) -> Reading:
    """What the rules of a parser find on a page."""
    reading = Reading(Method.SITE)
    own = tuple(Rule(**rule) for rule in hints.options.get("rules", ()) if _is_rule(rule))
    for rule in own + _present(parser.rules, tree):
        if rule.name not in reading.fields:
            _apply(rule, tree, reading, currency)
    if parser.variants is not None:
        reading.variants = parser.variants(tree)
    return reading


def _present(rules: tuple[Rule, ...], tree: LexborHTMLParser) -> tuple[Rule, ...]:
    """The rules that may find something: one search for all costs as much as for two."""
    if not rules:
        return ()
    names: set[str] = set()
    for element in tree.css(", ".join(rule.selector for rule in rules)):
        attributes = element.attributes
        names.update((attributes.get("class") or "").split(), [attributes.get("id") or ""])
        names.add("")
    return tuple(rule for rule in rules if not names.isdisjoint(_targets(rule.selector)))


@lru_cache(maxsize=1_000)
def _targets(selector: str) -> frozenset[str]:
    """For each alternative the class or id of the element it finds; empty where it has none."""
    parts = VALUES.sub("[]", selector).split(",")
    found = (TARGET.search(part.strip()) for part in parts)
    return frozenset(one.group(1) if one is not None else "" for one in found)


def _is_rule(rule: Any) -> bool:
    names = ("name", "selector", "attribute", "means", "pattern")
    return (
        isinstance(rule, dict)
        and {"name", "selector"} <= rule.keys() <= set(names)
        and all(isinstance(value, str) for value in rule.values())
    )


def select(tree: LexborHTMLParser | LexborNode, selector: str) -> list[LexborNode]:
    """The elements; none for a selector that cannot be read."""
    try:
        return tree.css(selector)[:20]
    except ValueError:
        return []


def _apply(rule: Rule, tree: LexborHTMLParser, reading: Reading, currency: str) -> None:
    for element in _found(tree, rule.selector):
        text = rule.means or _text(element, rule)
        if text and _put(reading, rule.name, text, rule.selector, currency):
            return


def _found(tree: LexborHTMLParser, selector: str) -> Iterator[LexborNode]:
    """The first element, which mostly settles it, then the others."""
    try:
        first = tree.css_first(selector)
    except ValueError:
        return
    if first is not None:
        yield first
        yield from select(tree, selector)[1:]


def _text(element: LexborNode, rule: Rule) -> str:
    if rule.attribute:
        text = element.attributes.get(rule.attribute) or ""
    else:
        # Shops split a price over elements, digits here and cents there.
        text = element.text(deep=True, separator="" if rule.name in MONEY else " ")
    text = clean(text, 5000)
    if rule.pattern:
        found = re.search(rule.pattern, text[:1000])
        return (found.group(1) if found.groups() else found.group()) if found else ""
    return text


def _put(reading: Reading, name: str, text: str, place: str, currency: str) -> bool:
    if name in MONEY:
        return _put_money(reading, name, text, place, currency)
    value: Any = text[:500]
    if name == "stock":
        value = read_stock(text)[0]
        value = None if value == "unknown" else value
    elif name == "stock_quantity":
        value = read_quantity(text)
    elif name == "gtin":
        value = read_gtin(text)
    reading.put(name, value, text[:500], place)
    return name in reading.fields


def _put_money(reading: Reading, name: str, text: str, place: str, currency: str) -> bool:
    price = parse_price(text, currency_hint=currency or None)
    if price.amount is None or price.amount <= Decimal(0):
        return False
    reading.put(name, price.amount, text[:200], place)
    if name == "price" and price.currency:
        reading.put("currency", price.currency, text[:200], place)
    return True
