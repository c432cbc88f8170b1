"""What names a product: GTINs that check out, ids in the URL, breadcrumbs."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from extraction.texts import Node, dicts, text_of

GTIN_KEYS = (
    "gtin13",
    "gtin",
    "gtin14",
    "gtin12",
    "gtin8",
    "ean",
    "ean13",
    "upc",
    "barcode",
    "isbn",
)
GTIN_LENGTHS = (8, 12, 13, 14)
DIGITS = re.compile(r"[\s-]")
# Each anchored to whole path segments; the first that fits names the product.
URL_IDS = (
    re.compile(r"/(?:dp|gp/product|gp/aw/d|exec/obidos/asin)/([A-Z0-9]{10})(?:/|$)"),
    re.compile(r"/itm/(?:[^/]+/)?(\d{9,14})(?:/|$)"),
    re.compile(r"/products/([a-z0-9][a-z0-9_%-]*)(?:\.js|\.json)?/?$", re.IGNORECASE),
    re.compile(r"/(?:p|ip|sku|item|product|prod|artikel)/(?:[^/]+/)?([A-Z]{0,4}\d{4,14})/?$", re.I),
    re.compile(r"-(?:p|pr|i|sku)[-_.]?(\d{4,14})(?:\.html?|/|$)", re.IGNORECASE),
    re.compile(r"/(\d{4,14})(?:\.html?)?/?$"),
    re.compile(r"[-_/.](\d{5,14})(?:\.html?|\.p)?/?$"),
)
QUERY_IDS = ("variant", "sku", "pid", "productid", "product_id", "item", "itemid", "id", "art")


def read_gtin(text: str) -> str:
    """The digits, when length and check digit are right; an ISBN-10 becomes its EAN."""
    digits = DIGITS.sub("", text)
    if len(digits) == 10 and digits[:9].isdigit():
        return _isbn13(digits)
    if not (digits.isascii() and digits.isdigit()) or len(digits) not in GTIN_LENGTHS:
        return ""
    return digits if check_digit(digits[:-1]) == digits[-1] and int(digits) else ""


def check_digit(digits: str) -> str:
    total = sum(int(d) * (3 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits)))
    return str(-total % 10)


def _isbn13(isbn: str) -> str:
    last = 10 if isbn[9] in "xX" else int(isbn[9]) if isbn[9].isdigit() else -1
    total = sum((10 - i) * int(d) for i, d in enumerate(isbn[:9])) + last
    body = f"978{isbn[:9]}"
    return body + check_digit(body) if last >= 0 and total % 11 == 0 else ""


def gtin_of(node: Node) -> str:
    """The first GTIN of a node that checks out."""
    for key in GTIN_KEYS:
        if key in node and (found := read_gtin(text_of(node[key]))):
            return found
    prefix, _, rest = text_of(node.get("productID")).partition(":")
    if prefix.lower() in GTIN_KEYS and (found := read_gtin(rest)):
        return found
    for entry in dicts(node.get("identifier")) + dicts(node.get("additionalProperty")):
        name = text_of(entry.get("propertyID") or entry.get("name")).lower().replace("-", "")
        if name in GTIN_KEYS and (found := read_gtin(text_of(entry.get("value")))):
            return found
    return ""


def sku_of(node: Node) -> str:
    """The shop's own number: sku, else productID without its scheme."""
    for key in ("sku", "productID", "productId"):
        scheme, _, rest = text_of(node.get(key), 255).rpartition(":")
        if rest and scheme.lower() not in GTIN_KEYS:
            return rest.strip()
    return ""


def product_id_from_url(url: str) -> str:
    """The id a URL carries for its product, anchored to whole segments."""
    try:
        parts = urlsplit(url)
        query = {k.lower(): v for k, v in parse_qsl(parts.query, max_num_fields=100)}
    except ValueError:
        return ""
    for pattern in URL_IDS:
        if found := pattern.search(parts.path):
            return found.group(1)[:255]
    return next((query[k][:255] for k in QUERY_IDS if query.get(k, "").isalnum()), "")


def breadcrumb_of(node: Node) -> tuple[str, ...]:
    """The names of a BreadcrumbList, in order."""
    names: list[str] = []
    for entry in dicts(node.get("itemListElement"))[:20]:
        item = entry.get("item")
        inner = item.get("name") if isinstance(item, dict) else ""
        names.append(text_of(entry.get("name") or inner, 200))
    return tuple(name for name in names if name)


def same_page(link: str, url: str) -> bool:
    """Whether two addresses lead to one page: host names may differ, paths may not."""
    try:
        one, other = urlsplit(link), urlsplit(url)
    except ValueError:
        return False
    path = one.path.rstrip("/").lower()
    return bool(path) and path == other.path.rstrip("/").lower()


def node_types(node: Any) -> frozenset[str]:
    """The schema.org types of a node, lower case, without their vocabulary."""
    kinds = node.get("@type", ())
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return frozenset(
        str(kind).rsplit("/", 1)[-1].rsplit(":", 1)[-1].rsplit("#", 1)[-1].lower()
        for kind in kinds
        if isinstance(kind, str)
    )
