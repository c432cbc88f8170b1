"""What product a page is about: the one door into this room."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urljoin, urlsplit

from extraction.items import Method, NoProduct, ProductItem, Stock
from extraction.jsonld import Node, blocks, products, types
from extraction.numbers import parse_amount

AVAILABILITY = {
    "instock": Stock.IN_STOCK,
    "onlineonly": Stock.IN_STOCK,
    "instoreonly": Stock.IN_STOCK,
    "available": Stock.IN_STOCK,
    "outofstock": Stock.OUT_OF_STOCK,
    "soldout": Stock.OUT_OF_STOCK,
    "oos": Stock.OUT_OF_STOCK,
    "limitedavailability": Stock.LIMITED_AVAILABILITY,
    "preorder": Stock.PREORDER,
    "presale": Stock.PREORDER,
    "backorder": Stock.BACKORDER,
    "availablefororder": Stock.BACKORDER,
    "discontinued": Stock.DISCONTINUED,
}
ATTRIBUTE = re.compile(rb"""([a-z:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
CURRENCY = re.compile(r"[A-Z]{3}\Z")
SPACE = re.compile(r"\s+")


def extract_product(body: bytes, url: str) -> ProductItem | NoProduct:
    """The main product of the page; never raises, whatever the bytes."""
    found = [node for block in blocks(body) for node in products(block)]
    if found:
        chosen = _main(found, url)
        if chosen is None:
            return NoProduct(f"{len(found)} products and none is this page's own")
        return _from_json_ld(chosen, url)
    return _from_opengraph(_meta(body), url)


def _main(found: list[Node], url: str) -> Node | None:
    named = [node for node in found if _text(node.get("name"))]
    if len({_text(node.get("name")) for node in named}) <= 1:
        return named[0] if named else None
    path = urlsplit(url).path.rstrip("/")
    own = [node for node in named if urlsplit(_link(node.get("url"), url)).path.rstrip("/") == path]
    return own[0] if own and path else None


def _from_json_ld(node: Node, url: str) -> ProductItem | NoProduct:
    offer = _offer(node)
    price_text = _price_text(offer)
    availability = _text(offer.get("availability"))
    currency = _text(offer.get("priceCurrency")) or _text(
        _first(offer.get("priceSpecification")).get("priceCurrency")
    )
    price = parse_amount(price_text)
    return ProductItem(
        name=_text(node.get("name"), 500),
        method=Method.JSON_LD,
        confidence=0.95 if price is not None else 0.7,
        reason="JSON-LD Product with offer" if offer else "JSON-LD Product without offer",
        price=price,
        list_price=_list_price(offer, price),
        currency=_currency(currency),
        stock=_stock(availability),
        sku=_text(node.get("sku") or offer.get("sku"), 255),
        gtin=_gtin(node) or _gtin(offer),
        mpn=_text(node.get("mpn"), 255),
        brand=_text(_named(node.get("brand")), 255),
        category=_text(_named(node.get("category")), 500),
        description=_text(node.get("description"), 5000),
        image_url=_image(node.get("image"), url),
        canonical_url=_link(node.get("url"), url),
        raw={"price": price_text, "currency": currency, "availability": availability},
    )


def _offer(node: Node) -> Node:
    """The offer that carries a price: the product's own, or its first variant's."""
    candidates = [o for o in _all(node.get("offers")) if isinstance(o, dict)]
    if "productgroup" in types(node) and not candidates:
        variants = [v for v in _all(node.get("hasVariant")) if isinstance(v, dict)]
        candidates = [o for v in variants for o in _all(v.get("offers")) if isinstance(o, dict)]
    nested = [o for c in candidates for o in _all(c.get("offers")) if isinstance(o, dict)]
    for candidate in (*candidates, *nested):
        if parse_amount(_price_text(candidate)) is not None:
            return candidate
    return candidates[0] if candidates else {}


def _price_text(offer: Node) -> str:
    for key in ("price", "lowPrice"):
        if (text := _text(offer.get(key))) != "":
            return text
    for specification in _all(offer.get("priceSpecification")):
        kind = str(specification.get("priceType", "")) if isinstance(specification, dict) else "?"
        if kind.rsplit("/", 1)[-1] in ("", "SalePrice"):
            return _text(specification.get("price"))
    return ""


def _list_price(offer: Node, price: Decimal | None) -> Decimal | None:
    for specification in _all(offer.get("priceSpecification")):
        if isinstance(specification, dict):
            kind = str(specification.get("priceType", "")).rsplit("/", 1)[-1]
            amount = parse_amount(specification.get("price"))
            if kind in ("ListPrice", "StrikethroughPrice", "MSRP") and amount != price:
                return amount
    return None


def _from_opengraph(meta: dict[str, str], url: str) -> ProductItem | NoProduct:
    price_text = meta.get("product:price:amount") or meta.get("og:price:amount") or ""
    price = parse_amount(price_text)
    if price is None and "product" not in meta.get("og:type", ""):
        return NoProduct("no product data on the page")
    name = meta.get("og:title", "")
    if not name:
        return NoProduct("OpenGraph product without a title")
    currency = meta.get("product:price:currency") or meta.get("og:price:currency") or ""
    availability = meta.get("product:availability") or meta.get("og:availability") or ""
    return ProductItem(
        name=name[:500],
        method=Method.OPENGRAPH,
        confidence=0.8 if price is not None else 0.5,
        reason="OpenGraph product with price" if price is not None else "OpenGraph product",
        price=price,
        currency=_currency(currency),
        stock=_stock(availability),
        sku=meta.get("product:retailer_item_id", "")[:255],
        brand=meta.get("product:brand", "")[:255],
        description=meta.get("og:description", "")[:5000],
        image_url=_link(meta.get("og:image"), url),
        canonical_url=_link(meta.get("og:url"), url),
        raw={"price": price_text, "currency": currency, "availability": availability},
    )


def _meta(body: bytes) -> dict[str, str]:
    """Properties of the page's meta elements; the first of a name counts."""
    found: dict[str, str] = {}
    for tag in _tags(body[:300_000]):
        parts = {m[0].lower(): m[1] or m[2] or m[3] for m in ATTRIBUTE.findall(tag)}
        name = (parts.get(b"property") or parts.get(b"name") or b"").decode("ascii", "ignore")
        content = html.unescape(parts.get(b"content", b"").decode("utf-8", "replace"))
        found.setdefault(name.lower(), _clean(content))
    return found


def _tags(head: bytes) -> Iterator[bytes]:
    """Meta elements that may tell of a product; each byte is looked at once."""
    position = 0
    while (start := head.find(b"<meta", position)) >= 0:
        end = head.find(b">", start)
        position = end if end > 0 else len(head)
        tag = head[start : min(position, start + 4000)]
        if b"og:" in tag or b"product:" in tag:
            yield tag


def _stock(text: str) -> Stock:
    word = re.sub(r"[^a-z]", "", text.rsplit("/", 1)[-1].lower())
    return AVAILABILITY.get(word, Stock.UNKNOWN)


def _currency(text: str) -> str:
    code = text.strip().upper()
    return code if CURRENCY.match(code) else ""


def _gtin(node: Node) -> str:
    for key in ("gtin13", "gtin", "gtin14", "gtin12", "gtin8", "ean", "isbn"):
        digits = re.sub(r"\D", "", _text(node.get(key)))
        if len(digits) in (8, 12, 13, 14) and _check_digit_right(digits):
            return digits
    return ""


def _check_digit_right(digits: str) -> bool:
    total = sum(int(d) * (3 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits[:-1])))
    return (total + int(digits[-1])) % 10 == 0


def _named(value: Any) -> Any:
    value = _first(value) if isinstance(value, (dict, list)) else value
    return value.get("name") if isinstance(value, dict) else value


def _image(value: Any, url: str) -> str:
    first = next(iter(_all(value)), "")
    if isinstance(first, dict):
        first = first.get("url") or first.get("contentUrl") or ""
    return _link(first, url)


def _link(value: Any, url: str) -> str:
    text = _text(value)
    if not text:
        return ""
    try:
        link = urljoin(url, text)
    except ValueError:
        return ""
    return link if link.startswith(("http://", "https://")) and len(link) <= 2048 else ""


def _all(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _first(value: Any) -> Node:
    return next((entry for entry in _all(value) if isinstance(entry, dict)), {})


def _text(value: Any, limit: int = 2048) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("@value") or value.get("@id") or ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return _clean(html.unescape(value) if isinstance(value, str) else str(value))[:limit]


def _clean(text: str) -> str:
    """Text PostgreSQL takes: no NUL, no lone surrogate, white space folded."""
    text = text.replace("\x00", "").encode("utf-8", "ignore").decode()
    return SPACE.sub(" ", text).strip()
