"""What discovery takes for a product becomes a candidate, once per product."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils import timezone

from common.urls import normalize_url, origin_of, url_hash
from crawling.fetching import Page, same_shop
from extraction.feeds import Listed
from extraction.items import PARSER_VERSION, ProductItem
from monitoring.found_urls import askable
from monitoring.models import Product

# A shop's own list names products; that their pages can be read is not proven yet.
LISTED_SCORE = 0.85
# What pages and lists are asked for beside their address, score and reason.
FACTS = ("name", "sku", "gtin", "brand", "category", "description", "image_url", "list_price")


@dataclass(slots=True)
class Kept:
    """What became of the findings, by the identity of the URL they were found at."""

    made: set[str]
    # Identity → the address of the product it is another address of.
    folded: dict[str, str]


def from_page(website_id: uuid.UUID, page: Page, item: ProductItem, canonical_url: str) -> Product:
    product = _product(website_id, page.url, item)
    product.discovery_score = item.confidence
    product.discovery_reason = item.reason
    product.extraction_method = item.method
    product.mpn = item.mpn
    product.canonical_hash = _canonical(page.url, canonical_url)
    product.last_crawled_at = page.fetched_at
    product.page_hash = page.content_hash
    product.parser_version = PARSER_VERSION
    return product


def from_list(website_id: uuid.UUID, platform: str, listed: Listed) -> Product | None:
    url = askable(listed.url)
    if url is None:
        return None
    product = _product(website_id, url, listed)
    product.discovery_score = LISTED_SCORE
    product.discovery_reason = f"In the shop's own list of products ({platform})"
    product.extraction_method = f"{platform}-feed"
    return product


def from_pattern(website_id: uuid.UUID, url: str, score: float, reason: str) -> Product:
    normalized = normalize_url(url)
    return Product(
        website_id=website_id,
        original_url=url,
        normalized_url=normalized,
        url_hash=url_hash(normalized),
        discovery_score=score,
        discovery_reason=reason[:255],
        extraction_method="url",
    )


def _product(website_id: uuid.UUID, url: str, found: ProductItem | Listed) -> Product:
    normalized = normalize_url(url)
    facts: dict[str, Any] = {name: getattr(found, name) for name in FACTS}
    return Product(
        website_id=website_id,
        original_url=url,
        normalized_url=normalized,
        url_hash=url_hash(normalized),
        current_price=found.price,
        current_currency=found.currency,
        current_stock_status=found.stock,
        **facts,
    )


def _canonical(url: str, canonical: str) -> str:
    """Empty where the page names no address of its own, or one that cannot be it: shops
    that call every page their front page must not become one product."""
    own = askable(canonical) if canonical else None
    if own is None or not same_shop(url, own) or own.rstrip("/") == origin_of(own):
        return ""
    return url_hash(normalize_url(own))


def keep(website_id: uuid.UUID, found: Sequence[Product]) -> Kept:
    """New products of one website; known ones, also rejected ones, stay as they are.
    Another address of a known product is folded into it; one that shares its GTIN or SKU
    is kept and marked."""
    now = timezone.now()
    known = _Known.load(website_id, found)
    kept = Kept(set(), {})
    new: list[Product] = []
    seen: set[uuid.UUID] = set()
    for product in found:
        same = known.same(product)
        if same is None:
            product.discovered_at = now
            known.mark_twin(product)
            known.add(product)
            new.append(product)
            kept.made.add(product.url_hash)
        else:
            seen.add(same.pk)
            if same.url_hash != product.url_hash:
                kept.folded[product.url_hash] = same.original_url
    Product.objects.bulk_create(new, batch_size=500)
    see_again(website_id, seen - {product.pk for product in new}, now)
    return kept


def see_again(website_id: uuid.UUID, ids: Iterable[uuid.UUID], now: dt.datetime) -> None:
    Product.objects.filter(website_id=website_id, id__in=list(ids)).update(
        discovered_at=now, vanished_at=None
    )


@dataclass(slots=True)
class _Known:
    """Products of a website by what tells them apart."""

    by_address: dict[str, Product]
    by_code: dict[tuple[str, str], Product]

    @classmethod
    def load(cls, website_id: uuid.UUID, found: Sequence[Product]) -> _Known:
        addresses = {p.url_hash for p in found} | {p.canonical_hash for p in found} - {""}
        gtins = {p.gtin for p in found} - {""}
        skus = {p.sku for p in found} - {""}
        alike = (
            Q(url_hash__in=addresses)
            | Q(canonical_hash__in=addresses)
            | Q(gtin__in=gtins)
            | Q(sku__in=skus)
        )
        known = cls({}, {})
        rows = Product.objects.filter(alike, website_id=website_id).order_by("created_at", "id")
        for product in rows.only(
            "id", "website_id", "url_hash", "canonical_hash", "gtin", "sku", "name", "original_url"
        ):
            known.add(product)
        return known

    def add(self, product: Product) -> None:
        self.by_address[product.url_hash] = product
        if product.canonical_hash:
            self.by_address.setdefault(product.canonical_hash, product)
        for code in _codes(product):
            self.by_code.setdefault(code, product)

    def same(self, product: Product) -> Product | None:
        """The product this is another address of, or the very one."""
        found = self.by_address.get(product.url_hash)
        if found is None and product.canonical_hash:
            found = self.by_address.get(product.canonical_hash)
        return found

    def mark_twin(self, product: Product) -> None:
        for code in _codes(product):
            twin = self.by_code.get(code)
            if twin is not None:
                product.duplicate_of = twin
                product.duplicate_reason = f"Same {code[0].upper()} {code[1]}"[:255]
                return


def _codes(product: Product) -> list[tuple[str, str]]:
    found = (("gtin", product.gtin), ("sku", product.sku))
    return [(name, code) for name, code in found if code]
