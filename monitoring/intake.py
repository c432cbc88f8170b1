"""Pages of watched products come in: read, compared, remembered, told. One batch, one
transaction, a handful of statements however many pages.

A page that did not change is not read again where the product's state was read from that
very page: its check repeats that state. A stored page that is read again (``reparsed``)
replaces no history row: it adds the row of its time where there is none, and corrects the
product only if no later page was read.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crawling.fetching import Failure, Page
from crawling.handover import Accepted, Store, Verdict
from crawling.models import CrawlTask
from extraction.items import NoProduct, ProductItem
from extraction.product import extract_product
from monitoring import snapshots
from monitoring.changes import Judgement, Rules, Seen, State, judge
from monitoring.models import Website
from monitoring.news import announce
from monitoring.snapshots import Known

GONE = Failure(CrawlTask.Category.VALIDATION, "the product is no longer watched", transient=False)

NOBODY = uuid.UUID(int=0)
Item = ProductItem | NoProduct


@dataclass(slots=True)
class Reading:
    """A page and what it means; None until somebody has to know."""

    page: Page
    item: Item | None = None

    def read(self) -> Item:
        if self.item is None:
            self.item = extract_product(self.page.content(), self.page.url)
        return self.item


@dataclass(frozen=True, slots=True)
class Check:
    """One product, looked at: what was known, what was seen, what it means."""

    known: Known
    page: Page
    item: ProductItem
    judgement: Judgement
    # A stored page that is read again may have its row, and may be older than what is known.
    is_new_row: bool = True
    is_newest: bool = True

    @property
    def page_hash(self) -> str:
        return self.page.content_hash

    @property
    def history_id(self) -> uuid.UUID:
        return snapshots.history_id(self.page.claim.id)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A product whose page is the one its state was read from."""

    known: Known
    page: Page


def receive_pages(pages: Sequence[Page]) -> Store:
    readings = [Reading(page) for page in pages]
    for reading in readings:
        # Most of those that did not change need not be read, as their product will show.
        if not reading.page.not_modified:
            reading.read()

    def store(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        return _store([r for r in readings if r.page.claim.id in accepted])

    return store


def _store(readings: Sequence[Reading]) -> dict[uuid.UUID, Verdict]:
    rules = _lock_rules({r.page.claim.website_id for r in readings if r.page.claim.website_id})
    products = snapshots.lock_known(
        [r.page.claim.object_id for r in readings if r.page.claim.object_id]
    )
    recorded = _recorded(readings)
    verdicts: dict[uuid.UUID, Verdict] = {}
    checks: list[Check] = []
    unchanged: list[Unchanged] = []
    for reading in readings:
        page = reading.page
        known = products.get(page.claim.object_id or NOBODY)
        if known is None:
            verdicts[page.claim.id] = Verdict(failure=GONE)
            continue
        if _says_nothing_new(known, page, rules[known.website_id].rules):
            unchanged.append(Unchanged(known, page))
            verdicts[page.claim.id] = Verdict()
            continue
        item = reading.read()
        if isinstance(item, NoProduct):
            verdicts[page.claim.id] = Verdict(failure=_unreadable(item))
            continue
        check = _check(known, page, item, rules[known.website_id].rules, recorded)
        checks.append(check)
        verdicts[page.claim.id] = Verdict(changes=len(check.judgement.news))
    snapshots.write(checks, unchanged)
    announce(checks, {key: website.client_id for key, website in rules.items()})
    return verdicts


def _says_nothing_new(known: Known, page: Page, rules: Rules) -> bool:
    """The page is the one the state was read from, and no rule that changed meanwhile
    makes news of it."""
    if not page.not_modified or page.reparsed or not known.was_read_from(page.content_hash):
        return False
    state = known.state
    if _is_told(state):
        return True
    judgement = judge(state, Seen(state.price, state.currency, state.stock), rules)
    return judgement.state == state and not judgement.news


def _is_told(state: State) -> bool:
    """Nothing is left to say under any rule: the usual case, without the judge."""
    told = (state.notified_price, state.notified_currency, state.notified_stock)
    return state.price is not None and told == (state.price, state.currency, state.stock)


def _recorded(readings: Sequence[Reading]) -> set[tuple[uuid.UUID, dt.datetime]]:
    again = [r.page for r in readings if r.page.reparsed]
    return snapshots.recorded(
        [(page.claim.object_id, page.fetched_at) for page in again if page.claim.object_id]
    )


def _check(
    known: Known,
    page: Page,
    item: ProductItem,
    rules: Rules,
    recorded: set[tuple[uuid.UUID, dt.datetime]],
) -> Check:
    seen = Seen(price=item.price, currency=item.currency, stock=item.stock)
    judgement = judge(known.state, seen, rules)
    if not page.reparsed:
        return Check(known, page, item, judgement)
    is_new_row = (known.id, page.fetched_at) not in recorded
    is_newest = known.last_crawled_at is None or page.fetched_at >= known.last_crawled_at
    if not (is_new_row and is_newest):
        judgement = _silent(known, judgement)
    return Check(known, page, item, judgement, is_new_row, is_newest)


def _silent(known: Known, judgement: Judgement) -> Judgement:
    """A second reading corrects what is known. It tells nobody, so what the client was
    told stays the measure of the next check."""
    told = known.state
    return Judgement(
        state=replace(
            judgement.state,
            notified_price=told.notified_price,
            notified_currency=told.notified_currency,
            notified_stock=told.notified_stock,
        ),
        news=(),
        price_changed=False,
        stock_changed=False,
        price_change_pct=None,
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
