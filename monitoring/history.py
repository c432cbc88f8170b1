"""The table of the price history: months made ahead, rows of deleted websites removed."""

from __future__ import annotations

import uuid

from django.db import connection
from django.utils import timezone

from common.partitions import ensure_partitions
from monitoring.models import ProductHistory

TABLE = ProductHistory._meta.db_table
BATCH = 10_000
# From one website to the next through the index: reading every row would take hours.
ORPHANED = """
WITH RECURSIVE seen AS (
    (SELECT website_id FROM monitoring_producthistory ORDER BY website_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT h.website_id FROM monitoring_producthistory h
        WHERE h.website_id > seen.website_id ORDER BY h.website_id LIMIT 1
    ) FROM seen WHERE seen.website_id IS NOT NULL
)
SELECT website_id FROM seen WHERE website_id IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM monitoring_website w WHERE w.id = seen.website_id)
"""
DELETE = """
DELETE FROM monitoring_producthistory WHERE (id, crawl_timestamp) IN (
    SELECT id, crawl_timestamp FROM monitoring_producthistory WHERE website_id = %s LIMIT %s)
"""


def make_months() -> list[str]:
    return ensure_partitions(TABLE, now=timezone.now())


def delete_history(website_id: uuid.UUID) -> None:
    """In batches, each its own transaction: there may be millions of rows."""
    deleted = BATCH
    while deleted == BATCH:
        with connection.cursor() as cursor:
            cursor.execute(DELETE, [website_id, BATCH])
            deleted = cursor.rowcount


def delete_product_history(product_id: uuid.UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM monitoring_producthistory WHERE product_id = %s", [product_id])


def delete_orphaned() -> None:
    """What is left where a process died between deleting a website and its history."""
    with connection.cursor() as cursor:
        cursor.execute(ORPHANED)
        orphaned = [row[0] for row in cursor.fetchall()]
    for website_id in orphaned:
        delete_history(website_id)
