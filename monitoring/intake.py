"""Pages of watched products come in: read, compared, remembered, told. One batch, one
transaction, a handful of statements however many pages.

A page that did not change is not read again where the product's state was read from that
very page: its check repeats that state. A stored page that is read again (``reparsed``)
replaces no history row: it adds the row of its time where there is none, and corrects the
product only if no later page was read. A price that is hard to believe, and a page that is
gone, are looked at a second time before they count.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from crawling.fetching import Failure, Page
from crawling.handover import Accepted, Store, Verdict
from crawling.models import CrawlTask
from extraction.items import NoProduct, ProductItem
from monitoring import absences, describing, second_looks, snapshots
from monitoring.absences import Absence
from monitoring.alerting import Rulebook, lock_rulebook
from monitoring.changes import Judgement, News, Rules, Seen, State, judge
from monitoring.models import AlertRule, Change
from monitoring.news import announce
from monitoring.reading import Reader, reader_for
from monitoring.snapshots import Known

GONE = Failure(CrawlTask.Category.VALIDATION, "the product is no longer watched", transient=False)

NOBODY = uuid.UUID(int=0)
NO_SUCH_PAGE = (404, 410)
Item = ProductItem | NoProduct


@dataclass(slots=True)
class Reading:
    """A page and what it means; None until somebody has to know."""

    page: Page
    reader: Reader
    item: Item | None = None

    def read(self) -> Item:
        if self.item is None:
            self.item = self.reader.read(self.page)
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


@dataclass(slots=True)
class Batch:
    """What the pages of a batch come to."""

    book: Rulebook
    products: dict[uuid.UUID, Known]
    recorded: set[tuple[uuid.UUID, dt.datetime]]
    checks: list[Check] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)

    def take(self, reading: Reading) -> Verdict:
        page = reading.page
        known = self.products.get(page.claim.object_id or NOBODY)
        if known is None:
            return Verdict(failure=GONE)
        if page.failure is not None:
            return self._miss(known, page, page.failure)
        rules = self.book.rules(known.website_id, known.id)
        if _says_nothing_new(known, page, rules):
            self.unchanged.append(Unchanged(known, page))
            return Verdict()
        item = reading.read()
        if isinstance(item, NoProduct):
            failure = _unreadable(item)
            gone = absences.says_gone(page, item)
            return self._miss(known, page, failure) if gone else Verdict(failure=failure)
        check = _check(known, page, item, rules, self.recorded)
        self.checks.append(check)
        return Verdict(changes=sum(not news.quarantined for news in check.judgement.news))

    def _miss(self, known: Known, page: Page, failure: Failure) -> Verdict:
        if page.reparsed:
            # What a stored page says of its day is no look at the shop of today.
            return Verdict(failure=failure)
        absence = Absence(known, page)
        self.absences.append(absence)
        return Verdict(changes=len(absence.news), failure=failure)

    def doubtful(self) -> Iterator[tuple[Known, Page]]:
        """What a second look must confirm; a second look asks for no third."""
        for check in self.checks:
            if check.judgement.held and not check.page.reparsed:
                yield check.known, check.page
        for absence in self.absences:
            if absence.wants_second:
                yield absence.known, absence.page


def receive_pages(pages: Sequence[Page]) -> Store:
    reader = reader_for(pages)
    readings = [Reading(page, reader) for page in pages]
    for reading in readings:
        # Most of those that did not change need not be read, as their product will show.
        if reading.page.failure is None and not reading.page.not_modified:
            reading.read()

    def store(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        verdicts = _store([r for r in readings if r.page.claim.id in accepted])
        reader.keep_learned()
        return verdicts

    return store


def receive_failures(pages: Sequence[Page]) -> Store:
    """That there is no such page is news; other failures say nothing of the product."""
    return receive_pages([page for page in pages if page.status in NO_SUCH_PAGE])


def _store(readings: Sequence[Reading]) -> dict[uuid.UUID, Verdict]:
    claims = [reading.page.claim for reading in readings]
    ids = [claim.object_id for claim in claims if claim.object_id]
    book = lock_rulebook({claim.website_id for claim in claims if claim.website_id}, ids)
    batch = Batch(book, snapshots.lock_known(ids), _recorded(readings))
    verdicts = {reading.page.claim.id: batch.take(reading) for reading in readings}
    snapshots.write(batch.checks, batch.unchanged)
    absences.mark(batch.absences)
    looked_at = Counter(claim.job_id for claim in claims)
    announce(batch.checks, batch.absences, book.clients, looked_at)
    second_looks.ask(batch.doubtful(), book.clients)
    return verdicts


def _says_nothing_new(known: Known, page: Page, rules: Rules) -> bool:
    """The page is the one the state was read from, and no rule that changed meanwhile
    makes news of it."""
    if not page.not_modified or page.reparsed or not known.was_read_from(page.content_hash):
        return False
    if known.missing_at is not None or known.delisted_at is not None:
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
    # A better parser corrects what was misread, however far off that was.
    judgement = judge(known.state, seen, rules, trusted=page.reparsed)
    if not page.reparsed:
        extra = _news_beside_price(known, item, rules)
        return Check(known, page, item, replace(judgement, news=(*judgement.news, *extra)))
    is_new_row = (known.id, page.fetched_at) not in recorded
    is_newest = _is_newest(known, page)
    if not (is_new_row and is_newest):
        judgement = _silent(known, judgement)
    elif absences.is_back(known, page):
        judgement = replace(judgement, news=(*judgement.news, absences.RELISTED))
    return Check(known, page, item, judgement, is_new_row, is_newest)


def _is_newest(known: Known, page: Page) -> bool:
    """The page its state was read from stays that, also where later looks found none."""
    if known.last_crawled_at is None or page.fetched_at >= known.last_crawled_at:
        return True
    return known.page_hash == page.content_hash


def _news_beside_price(known: Known, item: ProductItem, rules: Rules) -> Iterator[News]:
    if known.delisted_at is not None:
        yield absences.RELISTED
    wanted = next((a for a in rules.alerts if a.kind == AlertRule.Kind.ANY and a.armed), None)
    if wanted and known.facts_hash and known.facts_hash != describing.facts_hash(item):
        old, new = known.name[:64], item.name[:64]
        yield News(Change.Kind.CONTENT_CHANGED, old, new, "any change", alert_id=wanted.id)


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


def _unreadable(item: NoProduct) -> Failure:
    return Failure(CrawlTask.Category.PARSE, f"no product: {item.reason}", transient=False)
