"""What a product is, beside its price: written only where it differs from what is known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from common.ids import uuid7
from common.rows import as_json
from extraction.items import ProductItem

if TYPE_CHECKING:
    from monitoring.intake import Check

MAX_IMAGES = 50
# What a client may say of a product; the page speaks of it no more, until it is emptied.
FIXABLE = ("gtin", "mpn", "category")
FACTS = """
    UPDATE monitoring_product p SET
        name = COALESCE(NULLIF(v.name, ''), p.name), sku = COALESCE(NULLIF(v.sku, ''), p.sku),
        gtin = CASE WHEN p.fixed_fields ? 'gtin' THEN p.gtin
                    ELSE COALESCE(NULLIF(v.gtin, ''), p.gtin) END,
        mpn = CASE WHEN p.fixed_fields ? 'mpn' THEN p.mpn
                   ELSE COALESCE(NULLIF(v.mpn, ''), p.mpn) END,
        brand = COALESCE(NULLIF(v.brand, ''), p.brand),
        category = CASE WHEN p.fixed_fields ? 'category' THEN p.category
                        ELSE COALESCE(NULLIF(v.category, ''), p.category) END,
        description = COALESCE(NULLIF(v.description, ''), p.description),
        image_url = v.image_url, rating = v.rating, review_count = v.review_count,
        provenance = v.provenance, facts_hash = v.facts_hash
    FROM json_to_recordset(%s::json)
        AS v(id uuid, name text, sku text, gtin text, mpn text, brand text, category text,
             description text, image_url text, rating numeric, review_count int,
             provenance jsonb, facts_hash text)
    WHERE p.id = v.id
"""
DESCRIBED = (
    "id", "name", "sku", "gtin", "mpn", "brand", "category", "description", "image_url",
    "rating", "review_count", "provenance", "facts_hash",
)  # fmt: skip
FORGET_IMAGES = "DELETE FROM monitoring_productimage WHERE product_id = ANY(%s)"
IMAGES = """
    INSERT INTO monitoring_productimage
        (id, created_at, updated_at, product_id, url, position, alt_text, content_type,
         content_hash, storage_key)
    SELECT v.id, now(), now(), v.product_id, v.url, v.position, '', '', '', ''
    FROM json_to_recordset(%s::json) AS v(id uuid, product_id uuid, url text, position int)
    ON CONFLICT DO NOTHING
"""


def facts_hash(item: ProductItem) -> str:
    parts = (
        item.name,
        item.sku,
        item.gtin,
        item.mpn,
        item.brand,
        item.category,
        item.description,
        item.image_url,
        item.images,
        item.rating,
        item.review_count,
    )
    return digest(parts)


def digest(parts: object) -> str:
    """Two that read the same have the same; enough to tell them apart."""
    return hashlib.blake2b(repr(parts).encode(errors="replace"), digest_size=16).hexdigest()


def write(cursor: Any, checks: Sequence[Check]) -> None:
    hashes = [facts_hash(check.item) for check in checks]
    fresh = [
        (check, found)
        for check, found in zip(checks, hashes, strict=True)
        if found != check.known.facts_hash or check.page.reparsed
    ]
    if not fresh:
        return
    rows = [_row(check, found) for check, found in fresh]
    cursor.execute(FACTS, [as_json(DESCRIBED, rows)])
    _write_images(cursor, [check for check, _ in fresh])


def _row(check: Check, found: str) -> tuple[object, ...]:
    item = check.item
    return (
        check.known.id,
        item.name[:500],
        item.sku[:255],
        item.gtin[:14],
        item.mpn[:255],
        item.brand[:255],
        item.category[:500],
        item.description,
        item.image_url[:2048],
        item.rating if item.rating is not None and abs(item.rating) < 1000 else None,
        item.review_count,
        _provenance(item),
        found,
    )


def _provenance(item: ProductItem) -> dict[str, dict[str, object]]:
    return {
        name: {"source": one.source, "raw": one.raw[:200], "confidence": one.confidence}
        for name, one in item.fields.items()
    }


def _write_images(cursor: Any, checks: Sequence[Check]) -> None:
    rows = [
        (uuid7(), check.known.id, url, position)
        for check in checks
        for position, url in enumerate(_images(check.item))
    ]
    cursor.execute(FORGET_IMAGES, [[check.known.id for check in checks]])
    if rows:
        cursor.execute(IMAGES, [as_json(("id", "product_id", "url", "position"), rows)])


def _images(item: ProductItem) -> list[str]:
    urls = item.images or ((item.image_url,) if item.image_url else ())
    return [url for url in dict.fromkeys(urls) if len(url) <= 2048][:MAX_IMAGES]
