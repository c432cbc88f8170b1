from __future__ import annotations

from extraction.items import PARSER_VERSION
from extraction.sites.rules import Parser

GENERIC = Parser(
    "generic",
    PARSER_VERSION,
    "Reads any shop: structured data, embedded data, then the page as a shopper sees it.",
)
