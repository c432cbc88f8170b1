"""The elements and texts of a page in document order, listed once for all who ask."""

from __future__ import annotations

from functools import cached_property
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

# Enough for the largest shop pages; beyond is an attack or an accident.
NODES = 150_000
# Lexbor's number of texts.
TEXT = 2


def numbers_of(*tags: str) -> dict[int, str]:
    """The numbers by which lexbor knows these kinds of elements."""
    tree = LexborHTMLParser("<p>")
    return {tree.create_node(tag).tag_id: tag for tag in tags}


ASKED = numbers_of("h1", "meta", "link", "script")


class Walk:
    def __init__(self, tree: LexborHTMLParser) -> None:
        self.tree = tree

    @cached_property
    def nodes(self) -> list[LexborNode]:
        root = self.tree.root
        if root is None:
            return []
        return list(islice(root.traverse(include_text=True, skip_empty=True), NODES))

    @cached_property
    def kinds(self) -> list[int]:
        return [node.tag_id for node in self.nodes]

    @cached_property
    def _asked(self) -> dict[str, list[LexborNode]]:
        found: dict[str, list[LexborNode]] = {tag: [] for tag in ASKED.values()}
        for place in [place for place, kind in enumerate(self.kinds) if kind in ASKED]:
            found[ASKED[self.kinds[place]]].append(self.nodes[place])
        return found

    def every(self, tag: str) -> list[LexborNode]:
        return self._asked[tag]

    @property
    def headings(self) -> list[LexborNode]:
        return self._asked["h1"]

    @cached_property
    def title(self) -> LexborNode | None:
        return self.tree.css_first("title")
