"""One item out of what the sources say: first the most trusted, the others fill gaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from extraction.identity import product_id_from_url, read_gtin
from extraction.items import Field, Lost, Method, ProductItem, Stock
from extraction.readings import Reading

SHOWN = {"price": "price", "currency": "currency", "stock": "availability"}


def merge(
    readings: list[Reading], *, leave_out: tuple[str, ...] = ()
) -> tuple[dict[str, Field], list[Lost]]:
    """The first to say a thing is believed; a later one that says otherwise is kept as lost."""
    taken: dict[str, Field] = {}
    lost: list[Lost] = []
    for reading in readings:
        for name, field in reading.fields.items():
            known = taken.get(name)
            if name in leave_out:
                continue
            if known is None:
                taken[name] = field
            elif known.value != field.value and name != "description":
                lost.append(lose(name, field, f"{known.source} is trusted more"))
    return taken, lost


def lose(name: str, field: Field, reason: str) -> Lost:
    return Lost(name, field.value, field.source, field.raw, reason)


def identify(fields: dict[str, Field], url: str) -> None:
    """A shop that names no sku has its number in the address."""
    number = product_id_from_url(url)
    if number and any(c.isdigit() for c in number) and "-" not in number and "sku" not in fields:
        fields["sku"] = Field(number, Method.URL, url[:500], 0.6)


def build_item(
    fields: dict[str, Field],
    *,
    readings: Iterable[Reading],
    url: str,
    reason: str,
    lost: Iterable[Lost] = (),
    breadcrumb: tuple[str, ...] = (),
    canonical: str = "",
    parser: str = "generic",
) -> ProductItem:
    _number(fields)
    values: dict[str, Any] = {name: field.value for name, field in fields.items()}
    price, name = fields.get("price"), fields.get("name")
    main = price or name
    images = values.pop("images", ())
    category = values.pop("category", "") or " > ".join(breadcrumb[1:-1])[:500]
    listed = values.pop("list_price", None)
    if listed is not None and (price is None or listed <= price.value):
        listed = None
    canonical = canonical or values.pop("canonical_url", "")
    values.pop("canonical_url", None)
    return ProductItem(
        method=main.source if main else Method.VISIBLE,
        confidence=_confidence(fields),
        reason=reason,
        list_price=listed,
        category=category,
        breadcrumb=breadcrumb,
        images=images,
        image_url=images[0] if images else "",
        canonical_url=canonical,
        extracted_product_id=product_id_from_url(url),
        variants=next((r.variants for r in readings if r.variants), ()),
        parser=parser,
        raw={shown: fields[name].raw for name, shown in SHOWN.items() if name in fields},
        fields=fields,
        lost=tuple(lost),
        **{"name": "", "stock": Stock.UNKNOWN, **values},
    )


def _number(fields: dict[str, Field]) -> None:
    """A shop whose sku is a checked EAN has said its GTIN."""
    sku = fields.get("sku")
    number = read_gtin(sku.value) if sku is not None and len(sku.value) == 13 else ""
    if sku is not None and number and "gtin" not in fields:
        fields["gtin"] = replace(sku, value=number)


def _confidence(fields: dict[str, Field]) -> float:
    price = fields.get("price")
    if price is not None:
        return price.confidence
    return round(fields["name"].confidence * 0.75, 2) if "name" in fields else 0.0
