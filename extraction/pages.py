"""A page as the readers see it: its bytes, and what is made of them once, on demand."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction import jsonld, lenient, scopes
from extraction.items import Hints
from extraction.jsonld import Graph
from extraction.opengraph import Meta, canonical_of_bytes, meta_of
from extraction.texts import Node, clean, link_of
from extraction.trees import tree_of
from extraction.walks import Walk

# Where a head ends at the latest; a canonical link further down is none to browsers either.
HEAD = 200_000
# How microdata and RDFa are written; without any of these there is none.
ITEMS = (b"itemprop", b"itemscope", b"itemProp")
TYPED = b"typeof="


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
        return tree_of(self.body)

    @cached_property
    def walk(self) -> Walk:
        return Walk(self.tree)

    @cached_property
    def blocks(self) -> list[Any]:
        if not self.full:
            found, self.found_safely = jsonld.blocks(self.body)
            if self.found_safely:
                return found
        scripts = [s for s in self.walk.every("script") if "ld+json" in _kind(s)]
        texts = (script.text(deep=True).encode("utf-8", "replace") for script in scripts[:200])
        return [parsed for text in texts if (parsed := lenient.parse(text)) is not None]

    @cached_property
    def graph(self) -> Graph:
        return jsonld.read_graph(self.blocks)

    @cached_property
    def microdata(self) -> Graph:
        return jsonld.read_graph(scopes.read_items(self.items, scopes.MICRODATA))

    @cached_property
    def rdfa(self) -> Graph:
        if TYPED not in self.body:
            return Graph()
        return jsonld.read_graph(
            scopes.read_items(scopes.marked(self.tree, scopes.RDFA), scopes.RDFA)
        )

    @cached_property
    def has_items(self) -> bool:
        return any(spelling in self.body for spelling in ITEMS)

    @property
    def is_marked_up(self) -> bool:
        """Whether microdata or RDFa may be there."""
        return self.has_items or TYPED in self.body

    @cached_property
    def items(self) -> list[LexborNode]:
        if not self.has_items:
            return []
        return scopes.marked(self.tree, scopes.MICRODATA)

    @cached_property
    def loose(self) -> Node | None:
        return scopes.loose_product(self.items)

    @cached_property
    def meta(self) -> Meta:
        head = b"" if self.full else self._head
        return meta_of(Walk(tree_of(head)) if head else self.walk)

    @cached_property
    def _head(self) -> bytes:
        """The part before the body, if all metas are there."""
        end = self.body.find(b"</head>", 0, HEAD)
        metas_follow = any(self.body.find(tag, end) >= 0 for tag in (b"<meta", b"<META"))
        return b"" if end < 0 or metas_follow else self.body[:end]

    @cached_property
    def title(self) -> str:
        node = self.walk.title
        return clean(node.text(deep=True), 500) if node else ""

    @cached_property
    def headings(self) -> list[str]:
        texts = (clean(node.text(deep=True, separator=" "), 500) for node in self.walk.headings[:5])
        return [text for text in texts if text]

    @cached_property
    def canonical(self) -> str:
        if not self.full and ("tree" not in self.__dict__ or self._head):
            return link_of(canonical_of_bytes(self.body, HEAD), self.url)
        links = (link.attributes for link in self.walk.every("link"))
        own = (a for a in links if (a.get("rel") or "").lower() == "canonical")
        return link_of(next(own, {}).get("href") or "", self.url)


def _kind(script: LexborNode) -> str:
    return (script.attributes.get("type") or "").lower()
