"""Products, history and changes as files. Rows are read in pieces by key, each a query of its
own: no transaction stays open and no memory grows while a slow client downloads."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Client
from common import sheets
from common.errors import Invalid
from monitoring.models import Change, Export, Product, ProductHistory, Website

PIECE = 2_000
KEPT = dt.timedelta(days=7)
HISTORY_DAYS = 90
COLUMNS: dict[str, dict[str, str]] = {
    "products": {
        "id": "id",
        "website_id": "website_id",
        "website": "website__name",
        "name": "name",
        "url": "original_url",
        "brand": "brand",
        "category": "category",
        "sku": "sku",
        "gtin": "gtin",
        "mpn": "mpn",
        "price": "current_price",
        "list_price": "list_price",
        "currency": "current_currency",
        "stock_status": "current_stock_status",
        "stock_quantity": "stock_quantity",
        "lowest_price": "lowest_price",
        "highest_price": "highest_price",
        "rating": "rating",
        "review_count": "review_count",
        "delisted_at": "delisted_at",
        "last_crawled_at": "last_crawled_at",
        "last_changed_at": "last_changed_at",
    },
    "history": {
        "id": "id",
        "product_id": "product_id",
        "website_id": "website_id",
        "variant_key": "variant_key",
        "crawl_timestamp": "crawl_timestamp",
        "price": "price",
        "list_price": "list_price",
        "currency": "currency",
        "stock_status": "stock_status",
        "price_changed": "price_changed",
        "stock_changed": "stock_changed",
        "price_change_pct": "price_change_pct",
    },
    "changes": {
        "id": "id",
        "occurred_at": "occurred_at",
        "product_id": "product_id",
        "product_name": "product__name",
        "product_url": "product__original_url",
        "kind": "kind",
        "old": "old",
        "new": "new",
        "currency": "currency",
        "pct": "pct",
        "rule": "rule",
        "status": "status",
    },
}


def order_export(client: Client | None, kind: str, file_format: str, chosen: Any) -> Export:
    """Remember what is wanted; it is read when it is downloaded."""
    kept = {name: _text(value) for name, value in chosen.items()}
    start, end = chosen.get("from"), chosen.get("to")
    if start and end and start > end:
        raise Invalid("Must not be later than `to`.", attr="filter.from")
    return Export.objects.create(
        client=client,
        kind=kind,
        format=file_format,
        filter=kept,
        expires_at=timezone.now() + KEPT,
    )


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)


def stream(export: Export) -> Iterator[bytes]:
    columns = COLUMNS[export.kind]
    return sheets.stream(export.format, list(columns), _rows(export, list(columns.values())))


def _rows(export: Export, names: list[str]) -> Iterator[tuple[Any, ...]]:
    if export.kind == Export.Kind.PRODUCTS:
        yield from _pieces(_products(export), names, "id")
    elif export.kind == Export.Kind.CHANGES:
        yield from _pieces(_changes(export), names, "occurred_at")
    else:
        for website_id in _websites(export):
            yield from _pieces(_history(export, website_id), names, "crawl_timestamp")


def _pieces(rows: QuerySet[Any], names: list[str], key: str) -> Iterator[tuple[Any, ...]]:
    """From the oldest on; where the last piece ended, the next begins."""
    place, last = names.index(key), names.index("id")
    ordered = rows.order_by(key, "id") if key != "id" else rows.order_by("id")
    beyond = Q()
    while True:
        piece = list(ordered.filter(beyond).values_list(*names)[:PIECE])
        yield from piece
        if len(piece) < PIECE:
            return
        at, pk = piece[-1][place], piece[-1][last]
        beyond = Q((f"{key}__gt", at)) | Q((key, at), id__gt=pk)
        if key != "id":
            beyond &= Q((f"{key}__gte", at))


def _of_client(rows: Any, export: Export) -> Any:
    return rows if export.client is None else rows.for_client(export.client)


def _websites(export: Export) -> list[uuid.UUID]:
    rows = _of_client(Website.objects.all(), export)
    if website := export.filter.get("website"):
        rows = rows.filter(pk=website)
    if product := export.filter.get("product"):
        rows = rows.filter(products__id=product)
    return list(rows.order_by("id").values_list("id", flat=True))


def _products(export: Export) -> QuerySet[Any]:
    rows = _of_client(Product.objects.filter(approval=Product.Approval.APPROVED), export)
    return _narrowed(rows, export, website="website_id", product="id")


def _changes(export: Export) -> QuerySet[Any]:
    rows = _narrowed(
        _of_client(Change.objects.all(), export),
        export,
        website="product__website_id",
        product="product_id",
    )
    return _within(rows, export, "occurred_at")


def _history(export: Export, website_id: uuid.UUID) -> QuerySet[Any]:
    rows = ProductHistory.objects.filter(website_id=website_id)
    if product := export.filter.get("product"):
        rows = rows.filter(product_id=product)
    if "from" not in export.filter:
        since = export.created_at - dt.timedelta(days=HISTORY_DAYS)
        rows = rows.filter(crawl_timestamp__gte=since)
    return _within(rows, export, "crawl_timestamp")


def _narrowed(rows: Any, export: Export, **names: str) -> QuerySet[Any]:
    chosen = {names[key]: export.filter[key] for key in names if key in export.filter}
    found: QuerySet[Any] = rows.filter(**chosen)
    return found


def _within(rows: QuerySet[Any], export: Export, name: str) -> QuerySet[Any]:
    bounds = {"from": "gte", "to": "lte"}
    given = {f"{name}__{bounds[key]}": export.filter[key] for key in bounds if key in export.filter}
    return rows.filter(**given)
