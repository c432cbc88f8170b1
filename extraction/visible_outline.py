"""The page in flat lists: its elements and texts in document order; what they mean is worked out when asked."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from extraction.visible_words import BITS, TAG_BITS, meaning, style_bits
from extraction.walks import TEXT, Walk, numbers_of

# What a shopper does not see, and what holds no text.
UNSEEN = ("script", "style", "svg", "noscript", "template", "iframe", "head", "canvas", "video")
# Elements that later questions ask for by name.
SOUGHT = ("h1", "button", "input", "form", "select")
# Real pages stay under 200; kept lines of all ancestors cost depth squared.
DEEPEST = 250
NAMING = ("class", "id", "itemprop")
HIDDEN = BITS["hidden"]

Attributes = dict[str, str | None]
UNSEEN_IDS = frozenset(numbers_of(*UNSEEN))
SOUGHT_IDS = numbers_of(*SOUGHT)
KEPT_IDS = UNSEEN_IDS | SOUGHT_IDS.keys() | {TEXT}


@dataclass(slots=True)
class Outline:
    """An element is its place among all nodes, a text its place among the texts; -1 is none."""

    nodes: list[LexborNode] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    # Where each text stands among the nodes.
    text_nodes: list[int] = field(default_factory=list)
    sought: dict[str, list[int]] = field(default_factory=lambda: {tag: [] for tag in SOUGHT})
    _order: dict[int, int] = field(default_factory=dict)
    _lines: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _around: dict[int, frozenset[int]] = field(default_factory=dict)
    _spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    _own: dict[int, int] = field(default_factory=dict)
    _inherited: dict[int, int] = field(default_factory=lambda: {-1: 0})

    def tag(self, element: int) -> str:
        return self.nodes[element].tag or "-"

    def attributes(self, element: int) -> Attributes:
        return self.nodes[element].attributes

    def ancestors(self, node: int) -> tuple[int, ...]:
        """The node itself, then outwards."""
        line = self._lines.get(node)
        return self._line(node) if line is None else line

    def _line(self, node: int) -> tuple[int, ...]:
        unknown = []
        while (line := self._lines.get(node)) is None:
            unknown.append(node)
            parent = self.nodes[node].parent
            node = self._order[parent.mem_id] if parent is not None else 0
        for one in reversed(unknown):
            line = self._lines[one] = (one, *line[:DEEPEST])
        return line

    def parent(self, node: int) -> int:
        line = self.ancestors(node)
        return line[1] if len(line) > 1 else -1

    def owner(self, text: int) -> int:
        """The element a text stands in."""
        return self.ancestors(self.text_nodes[text])[1]

    def around(self, text: int) -> frozenset[int]:
        """Every element a text stands in."""
        found = self._around.get(text)
        if found is None:
            found = self._around[text] = frozenset(self.ancestors(self.text_nodes[text])[1:])
        return found

    def span(self, element: int) -> tuple[int, int]:
        """The first of an element's texts, and the first behind them."""
        found = self._spans.get(element)
        if found is None:
            texts = self.text_nodes
            found = bisect_left(texts, element), bisect_left(texts, self._behind(element))
            self._spans[element] = found
        return found

    def start(self, element: int) -> int:
        return self.span(element)[0]

    def texts_in(self, element: int) -> list[str]:
        start, end = self.span(element)
        return self.texts[start:end]

    def joined(self, element: int) -> str:
        return " ".join(self.texts_in(element))

    def _behind(self, element: int) -> int:
        """The node that follows an element and all that is in it."""
        while element > 0:
            sibling = self.nodes[element].next
            while sibling is not None:
                found = self._order.get(sibling.mem_id)
                if found is not None:
                    return found
                sibling = sibling.next
            element = self.parent(element)
        return len(self.nodes)

    def own(self, element: int) -> int:
        """The bits of an element's own tag and names."""
        bits = self._own.get(element)
        if bits is None:
            bits = self._own[element] = self._bits(element)
        return bits

    def inherited(self, element: int) -> int:
        """Its own bits and those of all around it."""
        bits = self._inherited.get(element)
        if bits is None:
            bits = 0
            for one in self.ancestors(element):
                if (known := self._inherited.get(one)) is not None:
                    bits |= known
                    break
                bits |= self.own(one)
            self._inherited[element] = bits
        return bits

    def _bits(self, element: int) -> int:
        node = self.nodes[element]
        bits = TAG_BITS.get(node.tag or "-", 0)
        # One look at all attributes: most elements have few, and each look has its cost.
        for key, value in node.attributes.items():
            if key in NAMING and value:
                bits |= meaning(value)
            elif key == "style" and value:
                bits |= style_bits(value)
            elif key == "hidden":
                bits |= HIDDEN
        return bits

    def place(self, element: int) -> str:
        """A short CSS path for the debugger and for learning."""
        steps = []
        for one in self.ancestors(element)[:4]:
            attributes = self.attributes(one)
            if identity := attributes.get("id"):
                steps.append(f"{self.tag(one)}#{identity}")
                break
            names = (attributes.get("class") or "").split()
            steps.append(".".join([self.tag(one), *names[:2]]))
        return " > ".join(reversed(steps))


def outline(walk: Walk) -> Outline:
    page = Outline(walk.nodes)
    body = walk.tree.body
    if body is not None:
        page._order = {node.mem_id: place for place, node in enumerate(page.nodes)}
        start = page._order.get(body.mem_id, 0)
        page._lines[start] = (start,)
        _sort(page, walk.kinds, start)
    return page


def _sort(page: Outline, kinds: list[int], unseen_until: int) -> None:
    """The texts a shopper sees, and the elements that are asked for by name."""
    texts, text_nodes, nodes = page.texts, page.text_nodes, page.nodes
    for place in [place for place, kind in enumerate(kinds) if kind in KEPT_IDS]:
        if place < unseen_until:
            continue
        kind = kinds[place]
        if kind == TEXT:
            if text := (nodes[place].text_content or "").strip():
                texts.append(text)
                text_nodes.append(place)
        elif kind in UNSEEN_IDS:
            inside = nodes[place].traverse(include_text=True, skip_empty=True)
            unseen_until = place + len(list(inside))
        else:
            page.sought[SOUGHT_IDS[kind]].append(place)
