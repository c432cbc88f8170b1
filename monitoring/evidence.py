"""Pages that prove something: they outlive the retention of pages."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import Q

from crawling.models import CrawlTask
from monitoring.models import Change, Product


def pages_to_keep(hashes: Collection[str]) -> set[str]:
    """Of these, the newest page of a product and those that prove a change."""
    newest = Product.objects.filter(page_hash__in=hashes).values_list("page_hash", flat=True)
    proofs = Change.objects.filter(page_hash__in=hashes).values_list("page_hash", flat=True)
    return {*newest, *proofs}


def is_page_of(client_id: uuid.UUID, content_hash: str) -> bool:
    """Is this a page of one of the client's products?"""
    product = Q(website__client_id=client_id)
    change = Q(product__website__client_id=client_id)
    task = Q(client_id=client_id, purpose="product")
    return (
        Product.objects.filter(product, page_hash=content_hash).exists()
        or Change.objects.filter(change, page_hash=content_hash).exists()
        or CrawlTask.objects.filter(task, stored_page__content_hash=content_hash).exists()
    )
