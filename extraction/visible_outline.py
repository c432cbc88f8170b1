"""The page in flat lists: its elements and their texts in order, walked once and without recursion."""

from __future__ import annotations

from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction.visible_words import BITS, TAG_BITS, meaning, style_bits

# What a shopper does not see, and what holds no text.
UNSEEN = frozenset(
    ["script", "style", "svg", "noscript", "template", "iframe", "head", "canvas", "video"]
)
# Elements that later questions ask for by name.
SOUGHT = frozenset(["h1", "button", "input", "form", "a", "select"])
HIDDEN = BITS["hidden"]
# Lexbor's numbers of node kinds: texts; undefined, end of file, document, comment, doctype.
TEXT = 2
UNSEEN_IDS = frozenset([0, 1, 3, 4, 5])
# Enough for the largest shop pages; beyond is an attack or an accident.
ELEMENTS = 60_000

Attributes = dict[str, str | None]


@dataclass(slots=True)
class Outline:
    """Element `i` holds the texts starts[i]:ends[i]; what its names mean is worked out when asked."""

    nodes: list[LexborNode] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    # The element each text stands in.
    owners: list[int] = field(default_factory=list)
    sought: dict[str, list[int]] = field(default_factory=lambda: {tag: [] for tag in SOUGHT})
    _own: dict[int, int] = field(default_factory=dict)
    _inherited: dict[int, int] = field(default_factory=lambda: {-1: 0})

    def attributes(self, element: int) -> Attributes:
        return self.nodes[element].attributes

    def joined(self, element: int) -> str:
        return " ".join(self.texts[self.starts[element] : self.ends[element]])

    def ancestors(self, element: int) -> list[int]:
        """The element itself, then outwards."""
        line = []
        while element >= 0:
            line.append(element)
            element = self.parents[element]
        return line

    def own(self, element: int) -> int:
        """The bits of an element's own tag and names."""
        bits = self._own.get(element)
        if bits is None:
            bits = self._own[element] = self._bits(element)
        return bits

    def inherited(self, element: int) -> int:
        """Its own bits and those of all around it."""
        line = []
        while element not in self._inherited:
            line.append(element)
            element = self.parents[element]
        bits = self._inherited[element]
        for one in reversed(line):
            bits |= self.own(one)
            self._inherited[one] = bits
        return bits

    def _bits(self, element: int) -> int:
        attributes = self.nodes[element].attributes
        bits = TAG_BITS.get(self.tags[element], 0)
        for key in ("class", "id", "itemprop"):
            if value := attributes.get(key):
                bits |= meaning(value)
        if style := attributes.get("style"):
            bits |= style_bits(style)
        return bits | HIDDEN if "hidden" in attributes else bits

    def place(self, element: int) -> str:
        """A short CSS path for the debugger and for learning."""
        steps = []
        for one in self.ancestors(element)[:4]:
            attributes = self.attributes(one)
            if identity := attributes.get("id"):
                steps.append(f"{self.tags[one]}#{identity}")
                break
            names = (attributes.get("class") or "").split()
            steps.append(".".join([self.tags[one], *names[:2]]))
        return " > ".join(reversed(steps))


def outline(tree: LexborHTMLParser) -> Outline:
    page = Outline()
    root = tree.body
    if root is not None:
        _walk(page, root)
    _close(page)
    return page


def _walk(page: Outline, root: LexborNode) -> None:
    """Depth first; the stack holds only where to go on after a subtree."""
    texts, owners, tags = page.texts, page.owners, page.tags
    stack: list[tuple[LexborNode, int]] = []
    node: LexborNode | None = root.first_child
    parent = _enter(page, "body", root, -1)
    while node is not None:
        child = None
        kind = node.tag_id
        if kind == TEXT:
            if (text := (node.text_content or "").strip()) != "":
                texts.append(text)
                owners.append(parent)
        elif kind not in UNSEEN_IDS and (tag := node.tag or "-") not in UNSEEN:
            child = node.first_child if len(tags) < ELEMENTS else None
            element = _enter(page, tag, node, parent)
        following = node.next
        if child is not None:
            if following is not None:
                stack.append((following, parent))
            node, parent = child, element
        elif following is not None or not stack:
            node = following
        else:
            node, parent = stack.pop()


def _enter(page: Outline, tag: str, node: LexborNode, parent: int) -> int:
    element = len(page.tags)
    page.tags.append(tag)
    page.nodes.append(node)
    page.parents.append(parent)
    page.starts.append(len(page.texts))
    if tag in SOUGHT:
        page.sought[tag].append(element)
    return element


def _close(page: Outline) -> None:
    """Where each element's texts end: after its own last text and its last child's."""
    ends = list(page.starts)
    for place, owner in enumerate(page.owners):
        ends[owner] = place + 1
    parents = page.parents
    for element in range(len(ends) - 1, 0, -1):
        parent = parents[element]
        if ends[element] > ends[parent]:
            ends[parent] = ends[element]
    page.ends = ends
