"""Memory: the current state of products and one history row per check, written in bulk."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson
from django.db import connection

from common.rows import as_json
from extraction.items import PARSER_VERSION
from monitoring import absences, describing, variants
from monitoring.changes import State, change_pct

if TYPE_CHECKING:
    from monitoring.intake import Check, Unchanged


@dataclass(frozen=True, slots=True)
class Known:
    """A product as it stood before the check."""

    id: uuid.UUID
    website_id: uuid.UUID
    url: str
    name: str
    sku: str
    content_hash: str
    last_changed_at: dt.datetime | None
    last_crawled_at: dt.datetime | None
    page_hash: str
    parser_version: str
    list_price: Decimal | None
    stock_quantity: int | None
    facts_hash: str
    missing_at: dt.datetime | None
    delisted_at: dt.datetime | None
    state: State

    def was_read_from(self, page_hash: str) -> bool:
        """Would reading this page say what is known already?"""
        return self.page_hash == page_hash and self.parser_version == PARSER_VERSION


KNOWN = """
    SELECT id, website_id, original_url, name, sku, content_hash, last_changed_at,
           last_crawled_at, page_hash, parser_version, list_price, stock_quantity, facts_hash,
           missing_at, delisted_at, current_price, current_currency, current_stock_status,
           notified_price, notified_currency, notified_stock_status, lowest_price, highest_price,
           held_price, held_currency, held_reason
    FROM monitoring_product
    WHERE id = ANY(%s) AND approval = 'approved'
    ORDER BY id FOR NO KEY UPDATE
"""
HISTORY = """
    COPY monitoring_producthistory
        (id, product_id, website_id, variant_key, crawl_timestamp, price, list_price, currency,
         stock_status, price_changed, stock_changed, is_doubted, price_change_pct, raw_crawl_data,
         crawl_job_id, crawl_task_id, page_hash, parser_version)
    FROM STDIN
"""
UPDATE = """
    UPDATE monitoring_product p SET
        current_price = v.price, current_currency = v.currency, list_price = v.list_price,
        current_stock_status = v.stock, stock_quantity = v.quantity, unit_price = v.unit_price,
        notified_price = v.notified_price, notified_currency = v.notified_currency,
        notified_stock_status = v.notified_stock, lowest_price = v.lowest,
        highest_price = v.highest, held_price = v.held_price, held_currency = v.held_currency,
        held_reason = v.held_reason, extraction_method = v.method,
        content_hash = v.content_hash, page_hash = v.page_hash,
        parser_version = v.parser_version,
        last_crawled_at = GREATEST(p.last_crawled_at, v.seen_at),
        last_changed_at = v.changed_at, updated_at = now(),
        missing_at = CASE WHEN p.missing_at > v.seen_at THEN p.missing_at END,
        delisted_at = CASE WHEN p.delisted_at > v.seen_at THEN p.delisted_at END
    FROM json_to_recordset(%s::json)
        AS v(id uuid, price numeric, currency text, list_price numeric, stock text, quantity int,
             unit_price numeric, notified_price numeric, notified_currency text,
             notified_stock text, lowest numeric, highest numeric, held_price numeric,
             held_currency text, held_reason text, method text, content_hash text,
             page_hash text, parser_version text, seen_at timestamptz, changed_at timestamptz)
    WHERE p.id = v.id
"""
UPDATED = (
    "id", "price", "currency", "list_price", "stock", "quantity", "unit_price",
    "notified_price", "notified_currency", "notified_stock", "lowest", "highest", "held_price",
    "held_currency", "held_reason", "method", "content_hash", "page_hash", "parser_version",
    "seen_at", "changed_at",
)  # fmt: skip


def lock_known(product_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Known]:
    """The approved among these products, locked in id order."""
    with connection.cursor() as cursor:
        cursor.execute(KNOWN, [list(product_ids)])
        return {row[0]: Known(*(*row[:15], State(*row[15:]))) for row in cursor.fetchall()}


SEEN_AGAIN = """
    UPDATE monitoring_product p SET last_crawled_at = v.seen_at, updated_at = now()
    FROM json_to_recordset(%s::json) AS v(id uuid, seen_at timestamptz)
    WHERE p.id = v.id
"""
RECORDED = """
    SELECT h.product_id, h.crawl_timestamp FROM monitoring_producthistory h
    JOIN unnest(%s::uuid[], %s::timestamptz[]) AS v(product_id, seen_at)
        ON h.product_id = v.product_id AND h.crawl_timestamp = v.seen_at
    WHERE h.variant_key = ''
"""


def recorded(looks: Sequence[tuple[uuid.UUID, dt.datetime]]) -> set[tuple[uuid.UUID, dt.datetime]]:
    """Those looks at a product that have their history row already."""
    if not looks:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(RECORDED, [[look[0] for look in looks], [look[1] for look in looks]])
        return set(cursor.fetchall())


def write(checks: Sequence[Check], unchanged: Sequence[Unchanged]) -> None:
    rows = [_history_row(check) for check in checks if check.is_new_row]
    rows += [_unchanged_row(look) for look in unchanged]
    with connection.cursor() as cursor:
        rows += variants.write(cursor, [check for check in checks if check.is_newest])
        if rows:
            # COPY goes past Django, which would turn psycopg's errors into its own.
            with connection.wrap_database_errors, cursor.copy(HISTORY) as copy:
                for row in rows:
                    copy.write_row(row)
        if newest := [_product_row(check) for check in checks if check.is_newest]:
            cursor.execute(UPDATE, [as_json(UPDATED, newest)])
            describing.write(cursor, [check for check in checks if check.is_newest])
        if unchanged:
            seen = [(look.known.id, look.page.fetched_at) for look in unchanged]
            cursor.execute(SEEN_AGAIN, [as_json(("id", "seen_at"), seen)])


def _unchanged_row(look: Unchanged) -> tuple[object, ...]:
    known, claim = look.known, look.page.claim
    return (
        history_id(claim.id),
        known.id,
        known.website_id,
        "",
        look.page.fetched_at,
        known.state.price,
        known.list_price,
        known.state.currency,
        known.state.stock,
        False,
        False,
        False,
        None if known.state.price is None else change_pct(known.state.price, known.state.price),
        None,
        claim.job_id,
        claim.id,
        look.page.content_hash,
        PARSER_VERSION,
    )


def history_id(task_id: uuid.UUID) -> uuid.UUID:
    """One history row per task, however often it is written."""
    return uuid.uuid5(task_id, "history")


def _history_row(check: Check) -> tuple[object, ...]:
    judgement, claim = check.judgement, check.page.claim
    return (
        check.history_id,
        check.known.id,
        check.known.website_id,
        "",
        check.page.fetched_at,
        check.item.price,
        check.item.list_price,
        check.item.currency,
        check.item.stock,
        judgement.price_changed,
        judgement.stock_changed,
        judgement.held,
        judgement.price_change_pct,
        _raw_data(check),
        claim.job_id,
        claim.id,
        check.page_hash,
        PARSER_VERSION,
    )


def _raw_data(check: Check) -> str | None:
    """Kept in full only where the product's data differs from the check before."""
    if data_hash(check) == check.known.content_hash:
        return None
    data = {"method": check.item.method, "url": check.page.url, **check.item.raw}
    return orjson.dumps(data).decode()


def data_hash(check: Check) -> str:
    """Two checks that read the same have the same; enough to tell them apart."""
    item = check.item
    parts = (
        item.name,
        item.price,
        item.list_price,
        item.currency,
        item.stock,
        item.sku,
        item.stock_quantity,
        item.variants,
    )
    return describing.digest(parts)


def _says_it_all(check: Check) -> bool:
    """Is the state what this page says? Where the page was silent on a part of it, a check
    that finds the same page must read it again to be silent on it too."""
    item, state = check.item, check.judgement.state
    said = (item.price, item.currency, item.stock)
    held = check.judgement.held
    return not held and said == (state.price, state.currency, state.stock)


def _product_row(check: Check) -> tuple[object, ...]:
    state, item, judgement = check.judgement.state, check.item, check.judgement
    back = absences.is_back(check.known, check.page)
    changed = judgement.price_changed or judgement.stock_changed or back
    return (
        check.known.id,
        state.price,
        state.currency,
        check.known.list_price if judgement.held else item.list_price,
        state.stock,
        item.stock_quantity,
        item.unit_price,
        state.notified_price,
        state.notified_currency,
        state.notified_stock,
        state.lowest,
        state.highest,
        state.held_price,
        state.held_currency,
        state.held_reason,
        item.method,
        check.known.content_hash if judgement.held else data_hash(check),
        check.page_hash,
        PARSER_VERSION if _says_it_all(check) else "",
        check.page.fetched_at,
        check.page.fetched_at if changed else check.known.last_changed_at,
    )
