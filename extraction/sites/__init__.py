"""The parsers there are: ``generic`` reads any shop, the others add rules for one shop software."""

from __future__ import annotations

from extraction.sites.amazon import AMAZON
from extraction.sites.bigcommerce import BIGCOMMERCE
from extraction.sites.generic import GENERIC
from extraction.sites.magento import MAGENTO
from extraction.sites.prestashop import PRESTASHOP
from extraction.sites.rules import Parser, Rule
from extraction.sites.shopify import SHOPIFY
from extraction.sites.woocommerce import WOOCOMMERCE

PARSERS = {
    parser.name: parser
    for parser in (GENERIC, SHOPIFY, WOOCOMMERCE, AMAZON, MAGENTO, PRESTASHOP, BIGCOMMERCE)
}

# Shop software names itself early: in the head, or in the first scripts of the body.
HEAD = 60_000

__all__ = ["PARSERS", "Parser", "Rule", "parser_for"]


def parser_for(name: str, host: str, body: bytes) -> Parser:
    """The one the domain asks for; under ``generic``, the one whose marks the page bears."""
    if name in PARSERS and name != "generic":
        return PARSERS[name]
    head = body[:HEAD]
    return next((p for p in PARSERS.values() if p.recognises(host, head)), GENERIC)
