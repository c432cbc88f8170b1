"""Pages of watched products come in: read, compared, remembered, told. One batch, one
transaction, a handful of statements however many pages."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from crawling.fetching import Failure, Page
from crawling.handover import Accepted, Store, Verdict
from crawling.models import CrawlTask
from extraction.items import NoProduct, ProductItem
from extraction.product import extract_product
from monitoring import snapshots
from monitoring.changes import Judgement, Rules, Seen, judge
from monitoring.models import Website
from monitoring.news import announce
from monitoring.snapshots import Known

GONE = Failure(CrawlTask.Category.VALIDATION, "the product is no longer watched", transient=False)


@dataclass(frozen=True, slots=True)
class Reading:
    page: Page
    item: ProductItem | NoProduct
    page_hash: str


@dataclass(frozen=True, slots=True)
class Check:
    """One product, looked at: what was known, what was seen, what it means."""

    known: Known
    page: Page
    item: ProductItem
    page_hash: str
    judgement: Judgement
    history_id: uuid.UUID


def receive_pages(pages: Sequence[Page]) -> Store:
    readings = [
        Reading(page, extract_product(page.body, page.url), page.content_hash) for page in pages
    ]

    def store(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        return _store([r for r in readings if r.page.claim.id in accepted])

    return store


def _store(readings: Sequence[Reading]) -> dict[uuid.UUID, Verdict]:
    rules = _lock_rules({r.page.claim.website_id for r in readings if r.page.claim.website_id})
    known = snapshots.lock_known(
        [r.page.claim.object_id for r in readings if r.page.claim.object_id]
    )
    verdicts: dict[uuid.UUID, Verdict] = {}
    checks: list[Check] = []
    for reading in readings:
        product = known.get(reading.page.claim.object_id or uuid.UUID(int=0))
        if product is None:
            verdicts[reading.page.claim.id] = Verdict(failure=GONE)
        elif isinstance(reading.item, NoProduct):
            verdicts[reading.page.claim.id] = Verdict(failure=_unreadable(reading.item))
        else:
            check = _check(product, reading, reading.item, rules[product.website_id].rules)
            checks.append(check)
            verdicts[reading.page.claim.id] = Verdict(changes=len(check.judgement.news))
    snapshots.write(checks)
    announce(checks, {key: website.client_id for key, website in rules.items()})
    return verdicts


def _check(known: Known, reading: Reading, item: ProductItem, rules: Rules) -> Check:
    seen = Seen(price=item.price, currency=item.currency, stock=item.stock)
    return Check(
        known=known,
        page=reading.page,
        item=item,
        page_hash=reading.page_hash,
        judgement=judge(known.state, seen, rules),
        # One history row per task, however often it is written.
        history_id=uuid.uuid5(reading.page.claim.id, "history"),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    client_id: uuid.UUID
    rules: Rules


def _lock_rules(website_ids: set[uuid.UUID]) -> dict[uuid.UUID, Watched]:
    """Websites are locked before products, everywhere."""
    rows = Website.objects.filter(id__in=website_ids).order_by("id").select_for_update(no_key=True)
    fields = ("id", "client_id", "price_change_threshold_pct", "price_change_threshold_abs")
    return {row[0]: Watched(row[1], Rules(row[2], row[3])) for row in rows.values_list(*fields)}


def _unreadable(item: NoProduct) -> Failure:
    return Failure(CrawlTask.Category.PARSE, f"no product: {item.reason}", transient=False)
