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
COUNT: Json = {"type": "integer", "minimum": 0}
JOB_SCHEMA = _object(
    id=UUID, kind=TEXT, status=TEXT, total=COUNT, processed=COUNT, changes=COUNT, errors=COUNT
)
DOCUMENT_SCHEMA = _object(id=UUID, url=TEXT, title=TEXT)
SUMMARY_SCHEMA = _object(
    date={"type": "string", "format": "date"},
    timezone=TEXT,
    **{"from": TIME, "until": TIME},
    websites_active=COUNT,
    websites_failed=COUNT,
    products_watched=COUNT,
    products_waiting=COUNT,
    checks=COUNT,
    changes={"type": "object", "additionalProperties": COUNT},
    largest_drops={
        "type": "array",
        "items": _object(product_id=UUID, name=TEXT, url=TEXT, old=TEXT, new=TEXT, pct=AMOUNT),
    },
)

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

JOB: Json = {
    "id": "0195b0e6-4c2d-7b11-9e0a-1d2c3b4a5968",
    "website_id": WEBSITE["id"],
    "kind": "monitor",
    "status": "success",
    "total": 120,
    "processed": 120,
    "changes": 7,
    "errors": 0,
    "error_summary": "",
    "url": "/api/v1/jobs/0195b0e6-4c2d-7b11-9e0a-1d2c3b4a5968",
}
DOCUMENT: Json = {
    "id": "0195b0e7-88f1-7d3e-a5c4-9b8a7c6d5e4f",
    "url": "https://docs.example/returns",
    "title": "Returns",
}
SUMMARY: Json = {
    "date": "2026-02-28",
    "timezone": "Europe/Berlin",
    "from": "2026-02-27T23:00:00Z",
    "until": "2026-02-28T23:00:00Z",
    "websites_active": 3,
    "websites_failed": 0,
    "products_watched": 412,
    "products_waiting": 5,
    "checks": 1648,
    "changes": {"price_changed": 19, "stock_changed": 4},
    "largest_drops": [
        {
            "product_id": PRODUCT["id"],
            "name": PRODUCT["name"],
            "url": PRODUCT["url"],
            "old": "99.90",
            "new": "79.90",
            "currency": "EUR",
            "pct": "-20.02",
        }
    ],
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


def _product_text(name: str, description: str, *, old: str, new: str) -> EventType:
    return EventType(
        name,
        description,
        {
            "object": PRODUCT,
            "previous": {"price": "79.90", "currency": "EUR", "stock_status": "in_stock"},
            "change": {"kind": name.removeprefix("product."), "old": old, "new": new},
        },
        _object(
            object=PRODUCT_SCHEMA,
            previous=_object(price=AMOUNT, currency=CURRENCY, stock_status=STOCK),
            change=_object(kind=TEXT, old=TEXT, new=TEXT),
        ),
    )


def _website(name: str, description: str, status: str) -> EventType:
    return EventType(
        name, description, {"object": {**WEBSITE, "status": status}}, _object(object=WEBSITE_SCHEMA)
    )


def _website_discovered() -> EventType:
    found: Json = {
        "job_id": "0195b0e4-52c3-7b1f-a0d4-6c1be8a5d733",
        "candidates": 48,
        "new": 48,
        "vanished": 0,
        "approved_by_rule": 0,
        "pages_read": 61,
        "is_complete": True,
        "test_crawl": {
            "url": "https://shop.example/",
            "final_url": "https://shop.example/",
            "http_status": 200,
            "checked_at": "2026-03-01T09:29:10Z",
            "address": "allowed",
            "robots": "allowed",
            "product_found": True,
            "method": "json-ld",
            "methods": {"json-ld": 48},
            "reason": "no product data on the page",
            "needs_javascript": False,
            "platform": "shopify",
            "links": 37,
            "error": "",
        },
    }
    count: Json = {"type": "integer", "minimum": 0}
    schema = _object(
        **WEBSITE_SCHEMA["properties"],
        job_id=UUID,
        candidates=count,
        new=count,
        vanished=count,
        approved_by_rule=count,
        pages_read=count,
        is_complete={"type": "boolean"},
        test_crawl={"type": ["object", "null"]},
    )
    return EventType(
        "website.discovered",
        "The search for products is done; candidates wait for approval. `test_crawl` is the "
        "verdict on the shop: how products are read, whether that needs JavaScript, which "
        "platform it is, and whether address and robots.txt allow it.",
        {"object": {**WEBSITE, "status": "pending_approval", **found}},
        _object(object=schema),
    )


def _parser_dropped() -> EventType:
    found: Json = {
        "host": "shop.example",
        "success_pct": 41.0,
        "usual_pct": 98.5,
        "job_id": "0195b0e4-52c3-7b1f-a0d4-6c1be8a5d733",
    }
    percent: Json = {"type": "number", "minimum": 0, "maximum": 100}
    schema = _object(
        **WEBSITE_SCHEMA["properties"],
        host=TEXT,
        success_pct=percent,
        usual_pct=percent,
        job_id=UUID,
    )
    return EventType(
        "parser.success_rate_dropped",
        "Far fewer pages of a host can be read than usual: the shop was probably rebuilt. "
        "Prices and stock stay as they were until pages can be read again.",
        {"object": {**WEBSITE, **found}},
        _object(object=schema),
    )


def _job(name: str, description: str, status: str) -> EventType:
    return EventType(
        name, description, {"object": {**JOB, "status": status}}, _object(object=JOB_SCHEMA)
    )


def _plain(name: str, description: str, **example: Any) -> EventType:
    """Of things that belong to the installation: an object with a few named texts."""
    fields = {key: COUNT if isinstance(value, int) else TEXT for key, value in example.items()}
    return EventType(name, description, {"object": example}, _object(object=_object(**fields)))


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
        _product_price(
            "product.target_reached",
            "The price reached the target of an alert rule.",
            old="84.90",
            pct="-5.89",
        ),
        _product_text(
            "product.currency_changed",
            "The price is in another currency; its amount is no price change.",
            old="USD",
            new="EUR",
        ),
        _product_text(
            "product.delisted",
            "The page is gone, and was still gone at a second look.",
            old="listed",
            new="delisted",
        ),
        _product_text(
            "product.relisted", "A delisted product is back.", old="delisted", new="listed"
        ),
        _product_text(
            "product.content_changed",
            "The product is described otherwise; only where an alert rule wants any change.",
            old="Trail shoe",
            new="Trail running shoe",
        ),
        _product_stock("product.stock_changed", "The availability changed."),
        _product_stock("product.back_in_stock", "The product can be bought again."),
        EventType(
            "product.approved",
            "The product was approved and is watched from now on.",
            {"object": PRODUCT},
            _object(object=PRODUCT_SCHEMA),
        ),
        _website_discovered(),
        _parser_dropped(),
        _job("job.completed", "A job that somebody asked for is done.", "success"),
        _job(
            "job.failed", "A job that somebody asked for ended with nothing but errors.", "failed"
        ),
        _job("job.cancelled", "A job that somebody asked for was cancelled.", "cancelled"),
        EventType(
            "summary.daily",
            "What the day before brought, each morning of the client.",
            {"object": SUMMARY},
            _object(object=SUMMARY_SCHEMA),
        ),
        _plain(
            "domain.circuit_opened",
            "A shop's host failed so often that it is left alone for a while.",
            host="shop.example",
            failures=5,
            next_try_at="2026-03-01T09:35:00Z",
        ),
        _website("website.activated", "The website is watched on its schedule.", "active"),
        _website("website.paused", "The website is no longer crawled until resumed.", "paused"),
        _website("website.failed", "The website could not be crawled and was stopped.", "failed"),
        EventType(
            "website.campaign",
            "Much of the shop moved the same way in one run: one event instead of many.",
            {
                "object": WEBSITE,
                "change": {
                    "kind": "price_changed",
                    "members": 184,
                    "looked_at": 200,
                    "job_id": "0195b0e6-4c1d-7b11-9a0e-2f6d8f1c3b44",
                    "url": "/api/v1/changes?campaign=0195b0e6-4c1d-7b11-9a0e-2f6d8f1c3b44",
                },
                "members": [
                    {
                        "id": PRODUCT["id"],
                        "name": PRODUCT["name"],
                        "old": "99.90",
                        "new": "79.90",
                        "pct": "-20.02",
                    }
                ],
            },
            _object(
                object=WEBSITE_SCHEMA,
                change=_object(
                    kind=TEXT,
                    members={"type": "integer"},
                    looked_at={"type": "integer"},
                    job_id=UUID,
                    url=TEXT,
                ),
                members={
                    "type": "array",
                    "items": _object(id=UUID, name=TEXT, old=TEXT, new=TEXT, pct=AMOUNT),
                },
            ),
        ),
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
