"""Stored pages are read again with the parser of today.

A dry run shows, for each stored page, what was read then and what would be read now. The
run itself reads the newest page of each product again: that corrects what is known of the
product. History rows stay as they were written, and nobody is told old news.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import OuterRef, Subquery

from accounts import audit
from accounts.audit import Actor
from common.errors import InvalidState
from common.urls import host_of
from crawling import frontier, jobs, pages, parsing
from crawling.models import CrawlJob, Domain, StoredPage
from crawling.pages import PageLost
from crawling.parsing import StoredLook, content_type_of
from extraction.items import PARSER_VERSION, NoProduct
from extraction.product import extract_product
from monitoring.models import Product, ProductHistory, Website
from monitoring.previews import plain
from monitoring.reading import hints_for

COMPARED = ("price", "list_price", "currency", "stock_status")
MOST_PAGES = 100
MOST_PRODUCTS = 10_000
NOTHING_STORED = "No page is stored any more: crawl it instead."


@dataclass(frozen=True, slots=True)
class Difference:
    """One stored page: what it said then, and what it would say now."""

    product_id: uuid.UUID
    name: str
    crawl_timestamp: dt.datetime
    page_hash: str
    parser_version: str
    old: dict[str, Any]
    # None where the page is no product to the parser of today, or cannot be read.
    new: dict[str, Any] | None
    why: str
    changed: list[str]


@dataclass(frozen=True, slots=True)
class Comparison:
    parser_version: str
    items: list[Difference]

    @property
    def pages(self) -> int:
        return len(self.items)

    @property
    def differing(self) -> int:
        return sum(bool(item.changed) for item in self.items)


def compare_product(product: Product, *, limit: int) -> Comparison:
    """The newest of its stored pages, each once with its newest check."""
    rows = ProductHistory.objects.filter(product_id=product.pk, variant_key="")
    looks = rows.exclude(page_hash="").order_by("-crawl_timestamp")[: 4 * limit]
    newest: dict[str, ProductHistory] = {}
    for row in looks:
        newest.setdefault(row.page_hash, row)
    stored = _stored(newest)
    kept = [row for row in newest.values() if row.page_hash in stored][:limit]
    return _compare([_old(product, row) for row in kept], product.website, stored)


def compare_website(website: Website, *, limit: int) -> Comparison:
    """The newest page of some of its products, those read by an older parser first."""
    rows = website.products.all().monitored().exclude(page_hash="")
    outdated = list(rows.exclude(parser_version=PARSER_VERSION).order_by("pk")[:limit])
    fresh = rows.filter(parser_version=PARSER_VERSION).order_by("pk")
    chosen = outdated + list(fresh[: limit - len(outdated)])
    stored = _stored(product.page_hash for product in chosen)
    kept = [_now(product) for product in chosen if product.page_hash in stored]
    return _compare(kept, website, stored)


def reparse_product(product: Product, *, actor: Actor) -> CrawlJob:
    return _run(product.website, [product], actor=actor, about=product)


def reparse_website(website: Website, *, actor: Actor) -> CrawlJob:
    products = website.products.all().monitored().exclude(page_hash="").order_by("pk")
    return _run(website, list(products[:MOST_PRODUCTS]), actor=actor, about=website)


@transaction.atomic
def _run(website: Website, products: Sequence[Product], *, actor: Actor, about: Any) -> CrawlJob:
    looks = _looks(products)
    if not looks:
        raise InvalidState(NOTHING_STORED)
    job = frontier.open_job(
        kind=CrawlJob.Kind.REPARSE,
        triggered_by=CrawlJob.Trigger.MANUAL,
        client_id=website.client_id,
        website_id=website.pk,
        parameters={"parser_version": PARSER_VERSION},
    )
    assert job is not None
    added = parsing.submit_stored(job, purpose="product", looks=looks)
    after = {"job": str(job.pk), "pages": added, "parser_version": PARSER_VERSION}
    audit.record(actor, "reparse", about, client_id=website.client_id, after=after)
    return job if added else jobs.close_empty(job)


def _looks(products: Sequence[Product]) -> list[StoredLook]:
    watched = [p for p in products if p.approval == Product.Approval.APPROVED]
    stored = _stored(product.page_hash for product in watched)
    came_at = _came_at(watched)
    return [
        StoredLook(
            url=product.original_url,
            final_url=product.original_url,
            object_id=product.pk,
            stored_page_id=stored[product.page_hash].pk,
            fetched_at=came_at[product.pk],
        )
        for product in watched
        if product.page_hash in stored and product.pk in came_at
    ]


def _came_at(products: Sequence[Product]) -> dict[uuid.UUID, dt.datetime]:
    """When the page of their state last came: later looks may have found none."""
    rows = ProductHistory.objects.filter(
        product_id=OuterRef("pk"), variant_key="", page_hash=OuterRef("page_hash")
    )
    newest = rows.order_by("-crawl_timestamp").values("crawl_timestamp")[:1]
    found = Product.objects.filter(pk__in=[product.pk for product in products])
    times = found.annotate(came_at=Subquery(newest)).exclude(came_at=None)
    return _first_seen_at(products) | dict(times.values_list("pk", "came_at"))


def _first_seen_at(products: Sequence[Product]) -> dict[uuid.UUID, dt.datetime]:
    """Of what was approved, and is known by the page of its discovery only, say."""
    return {
        product.pk: product.last_crawled_at
        for product in products
        if product.last_crawled_at and not (product.missing_at or product.delisted_at)
    }


def _stored(hashes: Iterable[str]) -> dict[str, StoredPage]:
    rows = StoredPage.objects.filter(content_hash__in=set(hashes))
    return {row.content_hash: row for row in rows}


@dataclass(frozen=True, slots=True)
class Old:
    product: Product
    crawl_timestamp: dt.datetime
    page_hash: str
    parser_version: str
    values: dict[str, Any]


def _old(product: Product, row: ProductHistory) -> Old:
    values = {name: getattr(row, name) for name in COMPARED}
    return Old(product, row.crawl_timestamp, row.page_hash, row.parser_version, values)


def _now(product: Product) -> Old:
    price, stock = product.current_price, product.current_stock_status
    told = (price, product.list_price, product.current_currency, stock)
    values = dict(zip(COMPARED, told, strict=True))
    seen_at = product.last_crawled_at or product.created_at
    return Old(product, seen_at, product.page_hash, product.parser_version, values)


def _compare(olds: Sequence[Old], website: Website, stored: dict[str, StoredPage]) -> Comparison:
    hosts = {host_of(old.product.original_url) for old in olds}
    domains = {domain.host: domain for domain in Domain.objects.filter(host__in=hosts)}
    items = []
    for old in olds:
        domain = domains.get(host_of(old.product.original_url))
        new, why = _read(old.product, stored[old.page_hash], hints_for(domain, website))
        items.append(_difference(old, new, why))
    return Comparison(PARSER_VERSION, items)


def _read(product: Product, page: StoredPage, hints: Any) -> tuple[dict[str, Any] | None, str]:
    try:
        body = pages.read_page(page)
    except PageLost:
        return None, "the file of this page is lost"
    kind = content_type_of(page.content_type, page.charset)
    item = extract_product(body, product.original_url, content_type=kind, hints=hints)
    if isinstance(item, NoProduct):
        return None, f"no product: {item.reason}"
    values = (item.price, item.list_price, item.currency, str(item.stock))
    return dict(zip(COMPARED, values, strict=True)), item.reason


def _difference(old: Old, new: dict[str, Any] | None, why: str) -> Difference:
    changed = list(COMPARED) if new is None else [n for n in COMPARED if new[n] != old.values[n]]
    return Difference(
        old.product.pk,
        old.product.name,
        old.crawl_timestamp,
        old.page_hash,
        old.parser_version,
        plain(old.values),
        None if new is None else plain(new),
        why,
        changed,
    )
