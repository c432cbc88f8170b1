"""The same product in several shops: by GTIN, or by brand and manufacturer's number. Names that
are merely alike are proposed; they count once somebody confirms them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from difflib import SequenceMatcher
from typing import Any

from django.db import transaction
from django.db.models import Q

from accounts import audit
from accounts.audit import Actor
from monitoring.models import Product, ProductMatch

ALIKE = 0.82
CANDIDATES = 200
Status = ProductMatch.Status


@dataclass(frozen=True, slots=True)
class Group:
    """One product in the shops of a client, cheapest first."""

    matched_by: str
    offers: list[Product]
    cheapest: Product | None
    # Where the asked one stands among those that can be compared: 1 is the cheapest.
    position: int | None
    spread_pct: Decimal | None


def compare(product: Product, visible: Any) -> Group:
    matched_by, others = _same(product, visible)
    offers = sorted([product, *others], key=_by_price)
    comparable = [one for one in offers if _is_comparable(one, product)]
    prices = [one.current_price for one in comparable if one.current_price is not None]
    spread = None
    if len(prices) > 1 and prices[0] > 0:
        spread = ((prices[-1] - prices[0]) / prices[0] * 100).quantize(Decimal("0.01"))
    return Group(
        matched_by=matched_by,
        offers=offers,
        cheapest=comparable[0] if comparable else None,
        position=next((n for n, one in enumerate(comparable, 1) if one.pk == product.pk), None),
        spread_pct=spread,
    )


def _by_price(product: Product) -> tuple[bool, Decimal, str]:
    price = product.current_price
    return price is None, price or Decimal(0), str(product.pk)


def _is_comparable(one: Product, asked: Product) -> bool:
    """Amounts of other currencies are shown, not compared."""
    return one.current_price is not None and one.current_currency == asked.current_currency


def _same(product: Product, visible: Any) -> tuple[str, list[Product]]:
    rows = visible.filter(approval=Product.Approval.APPROVED).exclude(pk=product.pk)
    mine = rows.filter(website__client_id=product.website.client_id)
    confirmed = Q(pk__in=_confirmed_with(product.pk))
    if product.gtin:
        return "gtin", list(mine.filter(Q(gtin=product.gtin) | confirmed)[:CANDIDATES])
    if product.brand and product.mpn:
        same = Q(brand__iexact=product.brand, mpn__iexact=product.mpn)
        return "brand_mpn", list(mine.filter(same | confirmed)[:CANDIDATES])
    return "confirmed", list(mine.filter(confirmed)[:CANDIDATES])


def _confirmed_with(product_id: uuid.UUID) -> set[uuid.UUID]:
    pairs = ProductMatch.objects.filter(
        Q(left=product_id) | Q(right=product_id), status=Status.CONFIRMED
    ).values_list("left_id", "right_id")
    return {pk for pair in pairs for pk in pair if pk != product_id}


def propose(product: Product, visible: Any) -> list[ProductMatch]:
    """Products of other shops whose names are alike; known pairs keep their verdict."""
    rows = visible.filter(approval=Product.Approval.APPROVED)
    mine = rows.filter(website__client_id=product.website.client_id)
    others = mine.exclude(website_id=product.website_id)
    if product.brand:
        others = others.filter(brand__iexact=product.brand)
    alike = _alike(product, others[:CANDIDATES])
    matches = [_match(product.pk, other.pk, score) for other, score in alike]
    ProductMatch.objects.bulk_create(matches, ignore_conflicts=True)
    either = Q(left=product.pk) | Q(right=product.pk)
    return list(ProductMatch.objects.filter(either).order_by("-score", "id")[:CANDIDATES])


def _alike(product: Product, others: Iterable[Product]) -> list[tuple[Product, float]]:
    found = []
    for other in others:
        # Two different numbers of the same register are two different products.
        if product.gtin and other.gtin and product.gtin != other.gtin:
            continue
        score = likeness(product.name, other.name)
        if score >= ALIKE:
            found.append((other, score))
    return sorted(found, key=lambda pair: -pair[1])


def likeness(one: str, other: str) -> float:
    """Of two names, whatever the order of their words."""
    first, second = (" ".join(sorted(re.findall(r"\w+", text.lower()))) for text in (one, other))
    if not first or not second:
        return 0.0
    return round(SequenceMatcher(None, first[:200], second[:200]).ratio(), 4)


def _match(one: uuid.UUID, other: uuid.UUID, score: float) -> ProductMatch:
    left, right = sorted((one, other))
    return ProductMatch(left_id=left, right_id=right, score=score, reason="names are alike")


@transaction.atomic
def decide(match: ProductMatch, status: str, *, actor: Actor) -> ProductMatch:
    rows = ProductMatch.objects.select_for_update(of=("self",)).select_related("left__website")
    locked = rows.get(pk=match.pk)
    before = {"status": locked.status}
    locked.status = status
    locked.save(update_fields=["status", "updated_at"])
    client_id = locked.left.website.client_id
    audit.record(
        actor, "decide", locked, client_id=client_id, before=before, after={"status": status}
    )
    return locked
