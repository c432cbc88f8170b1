"""How likely a URL leads to a product, by nothing but its looks."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

# Asking for these does something, or shows something of the visitor's own.
NEVER = re.compile(
    r"(?:^|[/?&_-])(?:add[-_]to[-_](?:cart|basket|wishlist)|cart|basket|warenkorb|panier|checkout"
    r"|kasse|log-?in|log-?out|sign-?in|sign-?up|register|my-?account|account|wish-?list|compare"
    r"|wp-admin|wp-login\.php|customer)(?:[/?=&.]|$)",
    re.IGNORECASE,
)
PRODUCT = re.compile(
    r"/(products?|produkte?|produits?|productos?|prodotti|artikel|articles?-?det\w*|items?|p|dp|pd|pdp"
    r"|sku|detail|buy)/[^/]+",
    re.IGNORECASE,
)
NUMBERED = re.compile(
    r"(?:[-_/.]p?-?\d{4,}|-p-?\d+|-a\d{3,})(?:\.html?|\.php|\.aspx)?/?$", re.IGNORECASE
)
LISTING = re.compile(
    r"/(categor\w+|kategori\w+|collections?|catalog(?:ue)?|c|shop|brands?|marken|sale|search|suche"
    r"|tags?|departments?|new|outlet)(?:/|$)",
    re.IGNORECASE,
)
TEXT = re.compile(
    r"/(blogs?|news|magazin\w*|journal|about\w*|ueber-uns|contact\w*|kontakt|imprint|impressum|privacy\w*"
    r"|datenschutz|terms\w*|agb|faq\w*|help|hilfe|careers?|jobs?|press|shipping|versand|returns?"
    r"|polic(?:y|ies)|pages?|stores?|gift-?cards?|newsletter)(?:/|$|\.)",
    re.IGNORECASE,
)
PAGED = re.compile(r"(?:[?&](?:page|p|seite|offset)=\d+|/page/\d+)", re.IGNORECASE)
# Rearranges what other pages show: filters and orders of lists have no end.
REARRANGED = re.compile(
    r"[?&](?:sort\w*|order\w*|filter\w*|view|dir|limit|per_page|q|s)(?:\[|=)", re.IGNORECASE
)


def is_never_asked(url: str) -> bool:
    """Carts, accounts and the like: a crawler has no business there."""
    parts = urlsplit(url)
    return bool(NEVER.search(f"{unquote(parts.path)}?{parts.query}"))


def score_url(url: str) -> tuple[float, str]:
    """From 0 to 1, and why."""
    parts = urlsplit(url)
    path, query = unquote(parts.path), f"?{parts.query}"
    if match := PRODUCT.search(path):
        score, reason = 0.7, f"URL pattern /{match[1].lower()}/"
    elif TEXT.search(path):
        return 0.05, "looks like a text page"
    elif NUMBERED.search(path):
        score, reason = 0.6, "URL pattern: ends in a number"
    elif LISTING.search(path):
        score, reason = 0.4, "looks like a list of products"
    elif path.strip("/") == "":
        score, reason = 0.5, "front page"
    else:
        score, reason = (
            (0.35, "page") if path.lower().endswith((".html", ".htm")) else (0.3, "page")
        )
    if PAGED.search(path + query):
        return min(score, 0.4), "further page of a list"
    if REARRANGED.search(query):
        return 0.1, "a list in another order"
    return score, reason


def family_of(url: str) -> str:
    """URLs that look alike: the folder of the page, without what only it has."""
    folder = urlsplit(url).path.rpartition("/")[0]
    first = folder.strip("/").split("/")[0]
    return f"/{first}/" if first else "/"
