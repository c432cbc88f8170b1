"""The products a page's markup speaks of, as readings with ISO currencies."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from extraction.choosing import choose_main, distinct
from extraction.currencies import host_currency, to_iso
from extraction.items import Method
from extraction.jsonld import Graph
from extraction.pages import Page
from extraction.readings import Reading
from extraction.schema import read_product
from extraction.sites import Parser, parser_for

MOST_PRODUCTS = 300


def read_graph_products(graph: Graph, page: Page, method: Method) -> list[Reading]:
    nodes = graph.products[:MOST_PRODUCTS]
    found = [read_product(node, page.url, method, page.hints.currency) for node in nodes]
    for reading in found:
        settle_currency(reading, page)
    return found


def settle_currency(reading: Reading, page: Page) -> None:
    """The ISO code of whatever the source wrote; a currency nobody knows is none."""
    field = reading.fields.pop("currency", None)
    if field is not None:
        text = str(field.value)
        reading.put("currency", to_iso(text) or to_iso(text, home_currency(page)), text)


def home_currency(page: Page) -> str:
    return page.hints.currency or host_currency(_host(page.url))


def parser_of(page: Page) -> Parser:
    return parser_for(page.hints.parser_name, _host(page.url), page.body)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def main_products(page: Page, titles: Callable[[], list[str]]) -> list[Reading]:
    """What each syntax says of the page's product, the most trusted first."""
    graphs = (
        (Method.JSON_LD, page.graph),
        (Method.MICRODATA, page.microdata),
        (Method.RDFA, page.rdfa),
    )
    chosen = []
    for method, graph in graphs:
        found = distinct(read_graph_products(graph, page, method))
        if (main := choose_main(found, page.url, titles)) is not None:
            chosen.append(main)
    return chosen or _loose(page)


def _loose(page: Page) -> list[Reading]:
    if page.loose is None or page.microdata.products:
        return []
    reading = read_product(page.loose, page.url, Method.MICRODATA)
    settle_currency(reading, page)
    return [reading]
