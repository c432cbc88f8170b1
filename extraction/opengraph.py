"""OpenGraph, Twitter cards and the other facts a page's head gives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from extraction.identity import read_gtin
from extraction.items import Method, Stock
from extraction.numbers import parse_amount
from extraction.readings import Reading
from extraction.stock import read_stock
from extraction.texts import clean, link_of, unescape
from extraction.walks import Walk

ATTRIBUTE = re.compile(rb"""([a-z:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
PRICES = ("product:sale_price:amount", "product:price:amount", "og:price:amount", "price")
CURRENCIES = ("product:sale_price:currency", "product:price:currency", "og:price:currency")
LISTED = (
    "product:original_price:amount",
    "og:price:standard_amount",
    "product:price:standard_amount",
)
STOCKS = ("product:availability", "og:availability")
SKUS = ("product:retailer_item_id", "product:sku", "product:retailer_part_no", "og:sku")
GTINS = ("product:ean", "product:gtin", "product:upc", "og:ean", "og:upc", "product:isbn")
Meta = dict[str, str]
MOST_METAS = 1000


def meta_of(walk: Walk) -> Meta:
    """Properties of the page's meta elements; the first of a name counts."""
    found: Meta = {}
    for element in walk.every("meta")[:MOST_METAS]:
        attributes = element.attributes
        name = attributes.get("property") or attributes.get("name") or ""
        text = clean(unescape(attributes.get("content") or ""), 5000)
        if text:
            found.setdefault(name.strip().lower(), text)
    return found


def canonical_of_bytes(body: bytes, reach: int) -> str:
    """The canonical link of the first bytes, without a tree."""
    for mark in (b'rel="canonical"', b"rel='canonical'", b"rel=canonical"):
        if (position := body.find(mark, 0, reach)) >= 0:
            start = body.rfind(b"<link", max(0, position - 2100), position)
            end = body.find(b">", position, position + 2100)
            if start >= 0 and end >= 0 and b">" not in body[start:position]:
                return next(_attribute(body[start:end], b"href"), "")
    return ""


def _attribute(tag: bytes, name: bytes) -> Iterator[str]:
    for match in ATTRIBUTE.findall(tag):
        if match[0].lower() == name:
            yield unescape((match[1] or match[2] or match[3]).decode("utf-8", "replace")).strip()


def read_opengraph(meta: Meta, url: str) -> Reading:
    reading = Reading(Method.OPENGRAPH, url=link_of(meta.get("og:url", ""), url))
    kind = meta.get("og:type", "").lower()
    reading.types = frozenset({kind} if kind else ())
    reading.put("name", _first(meta, ("og:title", "twitter:title"))[:500])
    raw = _first(meta, PRICES)
    reading.put("price", parse_amount(raw), raw)
    reading.put("currency", _first(meta, CURRENCIES))
    listed = _first(meta, LISTED)
    reading.put("list_price", parse_amount(listed), listed)
    _twitter_labels(reading, meta)
    stock, said = read_stock(_first(meta, STOCKS))
    if stock is not Stock.UNKNOWN:
        reading.put("stock", stock, said)
    reading.put("sku", _first(meta, SKUS)[:255])
    reading.put("gtin", next((g for key in GTINS if (g := read_gtin(meta.get(key, "")))), ""))
    reading.put("mpn", meta.get("product:mfr_part_no", "")[:255])
    reading.put("brand", _first(meta, ("product:brand", "og:brand"))[:255])
    reading.put("category", meta.get("product:category", "")[:500])
    reading.put("description", _first(meta, ("og:description", "description"))[:5000])
    image = link_of(meta.get("og:image", ""), url)
    reading.put("images", (image,) if image else ())
    return reading


def _twitter_labels(reading: Reading, meta: Meta) -> None:
    """Shops say price and stock in the two labels of a Twitter product card."""
    for number in ("1", "2"):
        label = meta.get(f"twitter:label{number}", "").strip(": ").lower()
        data = meta.get(f"twitter:data{number}", "")
        if label == "price" and reading.value("price") is None:
            reading.put("price", parse_amount(data), data)
        elif label == "availability":
            stock, said = read_stock(data)
            reading.put("stock", stock if stock is not Stock.UNKNOWN else None, said)


def calls_itself_product(meta: Meta) -> bool:
    kind = meta.get("og:type", "").lower()
    return "product" in kind.rsplit(":", 1)[-1] and "group" not in kind


def _first(meta: Meta, names: tuple[str, ...]) -> str:
    return next((meta[name] for name in names if meta.get(name)), "")
