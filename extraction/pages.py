"""A page as the readers see it: its bytes, and what is made of them once, on demand."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from extraction import jsonld, lenient, scopes
from extraction.charsets import mended
from extraction.depths import shallow
from extraction.items import Hints
from extraction.jsonld import Graph
from extraction.opengraph import Meta, canonical_of_bytes, meta_of_tree
from extraction.texts import Node, clean, link_of

# Where a head ends at the latest; a canonical link further down is none to browsers either.
HEAD = 200_000
CAMELS = {"itemscope": "itemScope", "itemprop": "itemProp"}


class Page:
    """``full`` finds everything in the tree; without it JSON-LD is found in the bytes."""

    def __init__(self, body: bytes, url: str, hints: Hints, *, full: bool = False) -> None:
        self.body = body
        self.url = url
        self.hints = hints
        self.full = full
        self.found_safely = True

    @cached_property
    def tree(self) -> LexborHTMLParser:
        return LexborHTMLParser(shallow(mended(self.body)))

    @cached_property
    def blocks(self) -> list[Any]:
        if not self.full:
            found, self.found_safely = jsonld.blocks(self.body)
            if self.found_safely:
                return found
        scripts = self.tree.css('script[type*="ld+json" i]')[:200]
        texts = (script.text(deep=True).encode("utf-8", "replace") for script in scripts)
        return [parsed for text in texts if (parsed := lenient.parse(text)) is not None]

    @cached_property
    def graph(self) -> Graph:
        return jsonld.read_graph(self.blocks)

    @cached_property
    def microdata(self) -> Graph:
        return self._scoped(scopes.MICRODATA)

    @cached_property
    def rdfa(self) -> Graph:
        return self._scoped(scopes.RDFA)

    def _scoped(self, syntax: scopes.Syntax) -> Graph:
        if not self._writes(syntax.scope):
            return Graph()
        return jsonld.read_graph(scopes.read_items(self.tree, syntax))

    def _writes(self, attribute: str) -> bool:
        """Whether an element may have such an attribute, in one of the usual spellings."""
        spellings = (attribute, attribute.upper(), CAMELS.get(attribute, attribute))
        return any(spelling.encode() in self.body for spelling in spellings)

    @cached_property
    def loose(self) -> Node | None:
        return scopes.loose_product(self.tree) if self._writes("itemprop") else None

    @cached_property
    def meta(self) -> Meta:
        return meta_of_tree(self.tree)

    @cached_property
    def title(self) -> str:
        node = self.tree.css_first("title")
        return clean(node.text(deep=True), 500) if node else ""

    @cached_property
    def headings(self) -> list[str]:
        texts = (
            clean(node.text(deep=True, separator=" "), 500) for node in self.tree.css("h1")[:5]
        )
        return [text for text in texts if text]

    @cached_property
    def canonical(self) -> str:
        if "tree" not in self.__dict__:
            return link_of(canonical_of_bytes(self.body, HEAD), self.url)
        node = self.tree.css_first('link[rel="canonical" i]')
        return link_of(node.attributes.get("href") or "", self.url) if node else ""
