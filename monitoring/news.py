"""Changes become rows and, where the client should hear of them, events."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import connection

from common.rows import as_json
from crawling.fetching import Page
from monitoring import campaigns
from monitoring.absences import Absence
from monitoring.changes import Kind, News, plain
from monitoring.models import Change
from monitoring.snapshots import Known
from notifications.events import EventDraft, publish

if TYPE_CHECKING:
    from monitoring.intake import Check

Status = Change.Status
PRICE_KINDS = (
    Kind.PRICE_CHANGED,
    Kind.NEW_LOW,
    Kind.NEW_HIGH,
    Kind.TARGET_REACHED,
    Kind.CURRENCY_CHANGED,
)
# What is folded into a campaign together with the movement itself.
FOLDED = {
    "price": {Kind.PRICE_CHANGED, Kind.NEW_LOW, Kind.NEW_HIGH},
    "stock": {Kind.STOCK_CHANGED, Kind.BACK_IN_STOCK},
}
CONFIRMED = "confirmed by a second look"
REFUTED = "a second look did not find it"
COLUMNS = (
    "id", "product_id", "kind", "old", "new", "currency", "pct", "rule", "alert_rule_id",
    "variant_key", "note", "crawl_job_id", "campaign_id", "history_id", "page_hash", "status",
    "occurred_at",
)  # fmt: skip
WRITE = f"""
    INSERT INTO monitoring_change ({", ".join(COLUMNS)})
    SELECT {", ".join(COLUMNS)}
    FROM json_populate_recordset(NULL::monitoring_change, %s::json)
    ON CONFLICT DO NOTHING
"""  # noqa: S608
BELIEVE = """
    UPDATE monitoring_producthistory h SET is_doubted = false
    FROM unnest(%s::uuid[], %s::numeric[]) AS v(product_id, price)
    CROSS JOIN LATERAL (
        SELECT crawl_timestamp FROM monitoring_producthistory d
        WHERE d.product_id = v.product_id AND d.variant_key = '' AND d.is_doubted
          AND d.price = v.price
        ORDER BY crawl_timestamp DESC LIMIT 1
    ) AS first
    WHERE h.product_id = v.product_id AND h.crawl_timestamp = first.crawl_timestamp
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of news of one look at one product."""

    news: News
    known: Known
    page: Page
    check: Check | None = None
    campaign_id: uuid.UUID | None = None
    # The row that was held, where a second look confirms it.
    twin_id: uuid.UUID | None = None

    @property
    def change_id(self) -> uuid.UUID:
        return self.twin_id or change_id(self.page.claim.id, self.news.kind)

    @property
    def history_id(self) -> uuid.UUID | None:
        return self.check.history_id if self.check else None


@dataclass(slots=True)
class Held:
    """The changes that wait for the second look that this batch is."""

    twins: dict[tuple[uuid.UUID, str], Change] = field(default_factory=dict)

    @classmethod
    def of(cls, checks: Sequence[Check]) -> Held:
        decided = [c.known.id for c in checks if c.judgement.confirmed or c.judgement.refuted]
        if not decided:
            return cls()
        rows = Change.objects.filter(
            product_id__in=decided, status=Status.QUARANTINED, kind__in=PRICE_KINDS
        )
        return cls({(row.product_id, row.kind): row for row in rows.order_by("occurred_at")})

    def settle(self, items: Sequence[Item]) -> None:
        """What was told again is confirmed; the rest was a mistake of the page."""
        kept = [item.twin_id for item in items if item.twin_id]
        lost = [row.pk for row in self.twins.values() if row.pk not in set(kept)]
        Change.objects.filter(pk__in=kept).update(status=Status.CONFIRMED, note=CONFIRMED)
        Change.objects.filter(pk__in=lost).update(status=Status.DISMISSED, note=REFUTED)


def announce(
    checks: Sequence[Check],
    absences: Sequence[Absence],
    clients: Mapping[uuid.UUID, uuid.UUID],
    looked_at: Counter[uuid.UUID],
) -> None:
    """Write the changes and publish their events, in the caller's transaction."""
    held = Held.of(checks)
    _believe([check for check in checks if check.judgement.confirmed])
    found = campaigns.find(checks, looked_at)
    items = [item for check in checks for item in _items(check, found, held)]
    items += [
        Item(news, absence.known, absence.page) for absence in absences for news in absence.news
    ]
    if held.twins:
        held.settle(items)
    _write([_change(item) for item in items if item.twin_id is None])
    _move_twins(items)
    publish([_draft(item, clients[item.known.website_id]) for item in items if _is_told(item)])


def _believe(confirmed: Sequence[Check]) -> None:
    """The first looks at what a second one confirms, were they news or not."""
    if confirmed:
        ids = [check.known.id for check in confirmed]
        prices = [check.known.state.held_price for check in confirmed]
        with connection.cursor() as cursor:
            cursor.execute(BELIEVE, [ids, prices])


def _write(rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(WRITE, [as_json(COLUMNS, rows)])


def _is_told(item: Item) -> bool:
    return not item.news.quarantined and item.campaign_id is None


def _items(check: Check, found: set[campaigns.Movement], held: Held) -> Iterable[Item]:
    job_id = check.page.claim.job_id
    folded: set[str] = set()
    for movement in campaigns.movements_of(check):
        if (job_id, movement) in found:
            folded |= FOLDED[movement.split()[0]]
    for news in check.judgement.news:
        twin = held.twins.get((check.known.id, news.kind)) if check.judgement.confirmed else None
        yield Item(
            news,
            check.known,
            check.page,
            check,
            campaign_id=job_id if news.kind in folded and not news.quarantined else None,
            twin_id=twin.pk if twin else None,
        )


def _move_twins(items: Sequence[Item]) -> None:
    """A change that a second look confirms is of the run that looked."""
    jobs: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for item in items:
        if item.twin_id is not None:
            jobs[item.page.claim.job_id].append(item.twin_id)
    for job_id, ids in jobs.items():
        Change.objects.filter(pk__in=ids).update(crawl_job_id=job_id)


def change_id(task_id: uuid.UUID, kind: str) -> uuid.UUID:
    return uuid.uuid5(task_id, kind)


def _change(item: Item) -> tuple[object, ...]:
    news, held = item.news, item.news.quarantined
    state = item.check.judgement.state if item.check else item.known.state
    return (
        item.change_id,
        item.known.id,
        news.kind,
        news.old,
        news.new,
        news.currency,
        news.pct,
        news.rule,
        news.alert_id,
        "",
        state.held_reason if held else "",
        item.page.claim.job_id,
        item.campaign_id,
        item.history_id,
        item.page.content_hash,
        Status.QUARANTINED if held else Status.CONFIRMED,
        item.page.fetched_at,
    )


def _draft(item: Item, client_id: uuid.UUID) -> EventDraft:
    known, news = item.known, item.news
    state = item.check.judgement.state if item.check else known.state
    return EventDraft(
        client_id=client_id,
        type=f"product.{news.kind}",
        cause=item.page.claim.id,
        occurred_at=item.page.fetched_at,
        website_id=known.website_id,
        object_id=known.id,
        data={
            "object": {
                "id": str(known.id),
                "website_id": str(known.website_id),
                "name": item.check.item.name if item.check else known.name,
                "url": known.url,
                "sku": item.check.item.sku if item.check else known.sku,
                "price": None if state.price is None else plain(state.price),
                "currency": state.currency,
                "stock_status": state.stock,
            },
            "previous": {
                "price": None if known.state.price is None else plain(known.state.price),
                "currency": known.state.currency,
                "stock_status": known.state.stock,
            },
            "change": {
                "id": str(item.change_id),
                "kind": news.kind,
                "old": news.old,
                "new": news.new,
                "pct": None if news.pct is None else str(news.pct),
                "rule": news.rule,
                "alert_rule_id": str(news.alert_id) if news.alert_id else None,
                "history_id": str(item.history_id) if item.history_id else None,
                "page_hash": item.page.content_hash,
            },
        },
    )
