"""Variants: rows of their own below a product, each with its series in the history table.

A series has a row where the variant differs from what was known: between two rows nothing
changed, and the product's own rows say when that was looked at.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from common.ids import uuid7
from common.rows import as_json
from extraction.items import PARSER_VERSION, Variant
from monitoring.changes import change_pct

if TYPE_CHECKING:
    from monitoring.intake import Check

MAX_VARIANTS = 200
Key = tuple[uuid.UUID, str]
KNOWN = """
    SELECT product_id, key, price, currency, stock_status
    FROM monitoring_variant WHERE product_id = ANY(%s)
"""
WRITE = """
    INSERT INTO monitoring_variant
        (id, created_at, updated_at, product_id, key, options, sku, gtin, price, currency,
         stock_status, last_seen_at)
    SELECT v.id, now(), now(), v.product_id, v.key, v.options, v.sku, v.gtin, v.price,
           v.currency, v.stock, v.seen_at
    FROM json_to_recordset(%s::json)
        AS v(id uuid, product_id uuid, key text, options jsonb, sku text, gtin text,
             price numeric, currency text, stock text, seen_at timestamptz)
    ON CONFLICT ON CONSTRAINT variant_once_per_product DO UPDATE SET
        updated_at = now(), options = excluded.options, sku = excluded.sku, gtin = excluded.gtin,
        price = excluded.price, currency = excluded.currency,
        stock_status = excluded.stock_status, last_seen_at = excluded.last_seen_at
"""
WRITTEN = (
    "id", "product_id", "key", "options", "sku", "gtin", "price", "currency", "stock", "seen_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Before:
    price: Decimal | None
    currency: str
    stock: str


def write(cursor: Any, checks: Sequence[Check]) -> list[tuple[object, ...]]:
    """Bring the variants up to date; answers the history rows of those that differ. A page
    whose price is held is not believed about its variants either."""
    told = [check for check in checks if check.item.variants and not check.judgement.held]
    if not told:
        return []
    cursor.execute(KNOWN, [[check.known.id for check in told]])
    known = {(row[0], row[1]): Before(*row[2:]) for row in cursor.fetchall()}
    found = {
        (check.known.id, one.key[:255]): (check, one)
        for check in told
        for one in check.item.variants[:MAX_VARIANTS]
        if one.key
    }
    rows = [_row(check, one) for _, (check, one) in sorted(found.items())]
    if rows:
        cursor.execute(WRITE, [as_json(WRITTEN, rows)])
    return [
        _history_row(check, one, before)
        for key, (check, one) in found.items()
        if check.is_new_row and _differs(before := known.get(key), one)
    ]


def _differs(before: Before | None, one: Variant) -> bool:
    return before is None or before != Before(one.price, one.currency, one.stock)


def _row(check: Check, one: Variant) -> tuple[object, ...]:
    return (
        uuid7(),
        check.known.id,
        one.key[:255],
        dict(one.options),
        one.sku[:255],
        one.gtin[:14],
        one.price,
        one.currency,
        one.stock,
        check.page.fetched_at,
    )


def _history_row(check: Check, one: Variant, before: Before | None) -> tuple[object, ...]:
    claim = check.page.claim
    comparable = before is not None and before.currency == one.currency
    return (
        uuid.uuid5(claim.id, f"variant {one.key}"),
        check.known.id,
        check.known.website_id,
        one.key[:255],
        check.page.fetched_at,
        one.price,
        one.list_price,
        one.currency,
        one.stock,
        before is not None and before.price != one.price,
        before is not None and before.stock != one.stock,
        False,
        change_pct(before.price, one.price) if before and comparable else None,
        None,
        claim.job_id,
        claim.id,
        check.page_hash,
        PARSER_VERSION,
    )
