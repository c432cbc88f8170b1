"""What clients are told: every type of event with its meaning, an example and a schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

API_VERSION = "1"
Json = dict[str, Any]


@dataclass(frozen=True)
class EventType:
    name: str
    description: str
    data: Json
    """An example of ``data``."""
    data_schema: Json

    @property
    def example(self) -> Json:
        return {
            "id": "evt_0d1c2b3a495867768594a3b2c1d0e0f1",
            "type": self.name,
            "api_version": API_VERSION,
            "created_at": "2026-03-01T09:30:00Z",
            "client_id": "0195b0e2-7c1d-7a54-9d53-0f6c2a9b1e77",
            "sequence": 1042,
            "data": self.data,
        }

    @property
    def schema(self) -> Json:
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "description": self.description,
            **_object(
                id={"type": "string", "pattern": "^evt_[0-9a-f]{32}$"},
                type={"const": self.name},
                api_version={"const": API_VERSION},
                created_at=TIME,
                client_id=UUID,
                sequence={"type": "integer", "minimum": 1},
                data=self.data_schema,
            ),
        }


UUID: Json = {"type": "string", "format": "uuid"}
TIME: Json = {"type": "string", "format": "date-time"}
TEXT: Json = {"type": "string"}
AMOUNT: Json = {"type": ["string", "null"], "pattern": r"^-?\d+(\.\d+)?$"}
CURRENCY: Json = {"type": ["string", "null"], "pattern": "^([A-Z]{3})?$"}
STOCK: Json = {
    "enum": [
        "in_stock",
        "out_of_stock",
        "limited_availability",
        "preorder",
        "backorder",
        "discontinued",
        "unknown",
    ]
}


def _object(**required: Json) -> Json:
    # Fields may be added within a version, so receivers and schemas must let them pass.
    return {"type": "object", "properties": required, "required": list(required)}


PRODUCT_SCHEMA = _object(
    id=UUID,
    website_id=UUID,
    name=TEXT,
    url=TEXT,
    price=AMOUNT,
    currency=CURRENCY,
    stock_status=STOCK,
)
WEBSITE_SCHEMA = _object(id=UUID, name=TEXT, base_url=TEXT, status=TEXT)
ENDPOINT_SCHEMA = _object(id=UUID, url=TEXT)

PRODUCT: Json = {
    "id": "0195b0e3-11aa-7d02-8a3f-5a4f0f6f2d10",
    "website_id": "0195b0e2-9a10-7c44-b1de-3f1f5a7d9c21",
    "name": "Trail running shoe",
    "url": "https://shop.example/products/trail-running-shoe",
    "sku": "TRS-42",
    "price": "79.90",
    "currency": "EUR",
    "stock_status": "in_stock",
}
WEBSITE: Json = {
    "id": "0195b0e2-9a10-7c44-b1de-3f1f5a7d9c21",
    "name": "Example shop",
    "base_url": "https://shop.example/",
    "status": "active",
}
ENDPOINT: Json = {
    "id": "0195b0e5-0b7e-7f3c-8c55-77b7e1f9ad03",
    "url": "https://client.example/hooks/obsrv",
}


def _product_price(name: str, description: str, *, old: str, pct: str) -> EventType:
    return EventType(
        name,
        description,
        {
            "object": PRODUCT,
            "previous": {"price": old, "currency": "EUR"},
            "change": {
                "kind": name.removeprefix("product."),
                "old": old,
                "new": PRODUCT["price"],
                "pct": pct,
            },
        },
        _object(
            object=PRODUCT_SCHEMA,
            previous=_object(price=AMOUNT, currency=CURRENCY),
            change=_object(kind=TEXT, old=TEXT, new=TEXT, pct=AMOUNT),
        ),
    )


def _product_stock(name: str, description: str) -> EventType:
    return EventType(
        name,
        description,
        {
            "object": PRODUCT,
            "previous": {"stock_status": "out_of_stock"},
            "change": {
                "kind": name.removeprefix("product."),
                "old": "out_of_stock",
                "new": PRODUCT["stock_status"],
            },
        },
        _object(
            object=PRODUCT_SCHEMA,
            previous=_object(stock_status=STOCK),
            change=_object(kind=TEXT, old=TEXT, new=TEXT),
        ),
    )


def _website(name: str, description: str, status: str) -> EventType:
    return EventType(
        name, description, {"object": {**WEBSITE, "status": status}}, _object(object=WEBSITE_SCHEMA)
    )


TYPES: dict[str, EventType] = {
    kind.name: kind
    for kind in (
        _product_price(
            "product.price_changed",
            "The price moved by more than the website's threshold.",
            old="99.90",
            pct="-20.02",
        ),
        _product_price(
            "product.new_low",
            "The price is the lowest seen since the product is watched.",
            old="84.90",
            pct="-5.89",
        ),
        _product_price(
            "product.new_high",
            "The price is the highest seen since the product is watched.",
            old="74.90",
            pct="6.68",
        ),
        _product_stock("product.stock_changed", "The availability changed."),
        _product_stock("product.back_in_stock", "The product can be bought again."),
        EventType(
            "product.approved",
            "The product was approved and is watched from now on.",
            {"object": PRODUCT},
            _object(object=PRODUCT_SCHEMA),
        ),
        _website(
            "website.discovered",
            "The search for products is done; candidates wait for approval.",
            "pending_approval",
        ),
        _website("website.activated", "The website is watched on its schedule.", "active"),
        _website("website.paused", "The website is no longer crawled until resumed.", "paused"),
        _website("website.failed", "The website could not be crawled and was stopped.", "failed"),
        EventType(
            "webhook.test",
            "Sent when asked for, to one endpoint.",
            {"object": ENDPOINT},
            _object(object=ENDPOINT_SCHEMA),
        ),
        EventType(
            "webhook.disabled",
            "An endpoint was switched off because it kept failing or answered 410.",
            {"object": ENDPOINT, "change": {"reason": "The receiver answered 410 Gone."}},
            _object(object=ENDPOINT_SCHEMA, change=_object(reason=TEXT)),
        ),
    )
}


def matches(patterns: Iterable[str], event_type: str) -> bool:
    """Whether ``*``, ``product.*`` or the exact type is among the patterns."""
    return any(_matches(pattern, event_type) for pattern in patterns)


def is_pattern(text: str) -> bool:
    """Whether some event could ever match: a misspelt pattern would be silent for ever."""
    return any(_matches(text, name) for name in TYPES)


def _matches(pattern: str, event_type: str) -> bool:
    if pattern == "*":
        return True
    if pattern.endswith(".*"):
        return event_type.startswith(pattern[:-1])
    return pattern == event_type
