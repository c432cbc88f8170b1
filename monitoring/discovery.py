"""Discovery: pages that may be products become candidates, and lead to further pages."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from common.errors import Refused
from common.urls import normalize_url, parse_url, url_hash
from crawling import frontier
from crawling.fetching import Page
from crawling.frontier import Target
from crawling.handover import Accepted, Store, Verdict
from crawling.models import CrawlJob, CrawlTask
from extraction.items import PARSER_VERSION, NoProduct, ProductItem
from extraction.links import page_links
from extraction.product import extract_product
from monitoring.models import Product, Website

# Seed pages and the pages they link to, e.g. home → category → product.
MAX_DEPTH = 2
# What the columns hold.
LONGEST_URL = 2048


@dataclass(frozen=True, slots=True)
class Reading:
    page: Page
    item: ProductItem | NoProduct
    links: list[str]


def receive_pages(pages: Sequence[Page]) -> Store:
    readings = [_read(page) for page in pages]

    def store(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        kept = [reading for reading in readings if reading.page.claim.id in accepted]
        _lock_websites(kept)
        _follow(kept)
        new = _keep_candidates(kept)
        return {r.page.claim.id: Verdict(changes=r.page.claim.id in new) for r in kept}

    return store


def _read(page: Page) -> Reading:
    # Also of pages that did not change: this website may see them for the first time, and
    # what they lead to may have changed.
    body = page.content()
    item = extract_product(body, page.url)
    deeper = page.claim.depth < MAX_DEPTH and isinstance(item, NoProduct)
    return Reading(page, item, page_links(body, page.url) if deeper else [])


def _lock_websites(readings: Sequence[Reading]) -> None:
    ids = sorted({r.page.claim.website_id for r in readings if r.page.claim.website_id})
    list(Website.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True))


def _follow(readings: Sequence[Reading]) -> None:
    """Ask for the links, once per URL and job, and never for more pages than allowed."""
    wanted: dict[uuid.UUID, dict[str, Target]] = defaultdict(dict)
    for reading in readings:
        claim = reading.page.claim
        for link in filter(None, map(_askable, reading.links)):
            target = Target(url=link, depth=claim.depth + 1, parent_id=claim.id)
            wanted[claim.job_id].setdefault(url_hash(normalize_url(link)), target)
    for job in CrawlJob.objects.filter(id__in=wanted):
        asked = set(CrawlTask.objects.filter(job=job).values_list("url_hash", flat=True))
        fresh = [target for digest, target in wanted[job.pk].items() if digest not in asked]
        room = max(0, settings.DISCOVERY_MAX_PAGES - len(asked))
        frontier.submit(job, purpose="discover", targets=fresh[:room])


def _askable(link: str) -> str | None:
    """The link as it can be asked for; None for one that is malformed or too long."""
    try:
        parsed = parse_url(link, allow_local=True)
    except Refused:
        return None
    return parsed if len(normalize_url(parsed)) <= LONGEST_URL else None


def _keep_candidates(readings: Sequence[Reading]) -> set[uuid.UUID]:
    """New products by task; a known one, also a rejected one, stays as it is."""
    candidates: dict[tuple[uuid.UUID, str], tuple[uuid.UUID, Product]] = {}
    for reading in readings:
        website_id = reading.page.claim.website_id
        if isinstance(reading.item, ProductItem) and website_id:
            product = _candidate(website_id, reading.page, reading.item)
            key = (website_id, product.url_hash)
            candidates.setdefault(key, (reading.page.claim.id, product))
    made = [product for _, product in candidates.values()]
    Product.objects.bulk_create(made, ignore_conflicts=True)
    kept = set(Product.objects.filter(id__in=[p.id for p in made]).values_list("id", flat=True))
    return {task_id for task_id, product in candidates.values() if product.id in kept}


def _candidate(website_id: uuid.UUID, page: Page, item: ProductItem) -> Product:
    normalized = normalize_url(page.url)
    return Product(
        website_id=website_id,
        discovery_score=item.confidence,
        discovery_reason=item.reason,
        original_url=page.url,
        normalized_url=normalized,
        url_hash=url_hash(normalized),
        extraction_method=item.method,
        name=item.name,
        sku=item.sku,
        gtin=item.gtin,
        mpn=item.mpn,
        brand=item.brand,
        category=item.category,
        description=item.description,
        image_url=item.image_url,
        current_price=item.price,
        list_price=item.list_price,
        current_currency=item.currency,
        current_stock_status=item.stock,
        last_crawled_at=page.fetched_at,
        page_hash=page.content_hash,
        parser_version=PARSER_VERSION,
    )
