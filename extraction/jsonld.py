"""JSON-LD blocks of a page, found without building a tree, and the products they are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from extraction.identity import breadcrumb_of, node_types
from extraction.lenient import parse
from extraction.texts import Node, words

MARK = b"ld+json"
# A page may nest its products this deep; deeper is an attack or an accident.
DEPTH = 12
MANY = 2000
MOST_BLOCKS = 100
PRODUCTS = words(
    "product productgroup individualproduct productmodel someproducts vehicle car motorcycle book"
    " videogame softwareapplication mobileapplication webapplication apartment house"
)
# Sold only when an offer says so: books, programs and homes are also written about.
SOLD_BY_OFFER = words(
    "book videogame softwareapplication mobileapplication webapplication apartment house"
)
LISTS = words("itemlist searchresultspage collectionpage offercatalog productcollection")
# Where a page names products that are not its own.
RELATED = words(
    "isrelatedto issimilarto isaccessoryorsparepartfor itemlistelement hasvariant itemreviewed"
    " isconsumablefor itemoffered review reviews makesoffer hasoffercatalog about mentions"
    " isvariantof addon"
)


@dataclass(slots=True)
class Graph:
    """What the blocks of a page speak of."""

    products: list[Node] = field(default_factory=list)
    # Products named inside lists, reviews and the like: the page shows, but is not about them.
    mentioned: list[Node] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    breadcrumb: tuple[str, ...] = ()
    ids: dict[str, Node] = field(default_factory=dict)
    left: int = MANY


def blocks(body: bytes) -> tuple[list[Any], bool]:
    """Every block that can be read, and whether finding them without a tree was safe."""
    found: list[Any] = []
    safe = True
    position = seen = looked = 0
    comment = -1
    while (mark := body.find(MARK, position)) >= 0:
        position = mark + len(MARK)
        start = body.find(b">", mark)
        opening = body.rfind(b"<", max(0, mark - 400), mark)
        if start < 0 or body[opening : opening + 7].lower() != b"<script":
            continue
        end = script_end(body, start)
        seen += 1
        if end < 0 or seen > MOST_BLOCKS:
            return found, False
        comment = max(comment, body.rfind(b"<!--", looked, opening))
        safe = safe and not _still_open(body, comment, opening)
        looked, position = opening, end
        block = body[start + 1 : end]
        parsed = parse(block)
        safe = safe and (parsed is not None or b"<!--" not in block)
        if parsed is not None:
            found.append(parsed)
    return found, safe


def script_end(body: bytes, start: int) -> int:
    end = body.find(b"</", start)
    while end >= 0 and body[end + 2 : end + 8].lower() != b"script":
        end = body.find(b"</", end + 2)
    return end


def _still_open(body: bytes, comment: int, position: int) -> bool:
    """Whether a comment is open there; what looks so inside a script is a doubt too."""
    return comment >= 0 and body.find(b"-->", comment, position) < 0


def read_graph(found: list[Any]) -> Graph:
    graph = Graph()
    for block in found:
        _index(block, graph, DEPTH)
        _walk(block, graph, DEPTH, own=True)
    return graph


def _index(value: Any, graph: Graph, depth: int) -> None:
    """Nodes of a graph by @id, so that a bare reference can be followed."""
    nodes = value.get("@graph") if isinstance(value, dict) else value
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict) and isinstance(node.get("@id"), str) and len(node) > 2:
            graph.ids.setdefault(node["@id"], node)


def _walk(value: Any, graph: Graph, depth: int, *, own: bool) -> None:
    graph.left -= 1
    if depth == 0 or graph.left < 0:
        return
    if isinstance(value, list):
        for entry in value:
            _walk(entry, graph, depth - 1, own=own)
    elif isinstance(value, dict):
        _visit(value, graph, depth, own=own)


def _visit(node: Node, graph: Graph, depth: int, *, own: bool) -> None:
    kinds = node_types(node)
    graph.types |= kinds
    if "breadcrumblist" in kinds:
        graph.breadcrumb = graph.breadcrumb or breadcrumb_of(node)
        return
    if is_product(node, kinds):
        (graph.products if own else graph.mentioned).append(node)
        return
    listing = bool(kinds & LISTS)
    for key, part in node.items():
        if isinstance(part, dict | list):
            mine = own and not listing and key.lower() not in RELATED
            _walk(part, graph, depth - 1, own=mine)


def is_product(node: Node, kinds: frozenset[str]) -> bool:
    if not kinds & PRODUCTS:
        return False
    return bool(kinds - SOLD_BY_OFFER and kinds & (PRODUCTS - SOLD_BY_OFFER)) or "offers" in node


def resolve(value: Any, graph: Graph) -> Any:
    """A bare ``{"@id": …}`` becomes the node it points at."""
    if isinstance(value, dict) and len(value) <= 2 and isinstance(value.get("@id"), str):
        return graph.ids.get(value["@id"], value)
    return value
