"""What an offer asks: the price a shopper pays, apart from list, unit, member and rate prices."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from extraction.identity import node_types, same_page
from extraction.items import Stock
from extraction.numbers import parse_amount
from extraction.stock import read_quantity, read_stock
from extraction.texts import Node, dicts, every, text_of

LIST_KINDS = (
    "listprice",
    "strikethroughprice",
    "msrp",
    "srp",
    "suggestedretailprice",
    "regularprice",
)
RATE_KEYS = ("billingDuration", "billingIncrement", "validForMemberTier", "billingStart")
UNIT_KEYS = ("referenceQuantity", "unitCode", "unitText")
USED = ("usedcondition", "refurbishedcondition", "damagedcondition")
LEASES = ("leaseout", "repair", "dispose")


@dataclass(frozen=True, slots=True)
class Offer:
    node: Node
    price: Decimal | None = None
    raw: str = ""
    currency: str = ""
    list_price: Decimal | None = None
    unit_price: Decimal | None = None
    unit: str = ""
    stock: Stock = Stock.UNKNOWN
    stock_raw: str = ""
    quantity: int | None = None
    is_range: bool = False
    url: str = ""


def offers_of(node: Node) -> list[Offer]:
    """The offers of a product, those inside an AggregateOffer too."""
    found = [read_offer(entry) for entry in _flat(node)]
    if not found and any(key in node for key in ("price", "lowPrice")):
        found = [read_offer(node)]
    return found


def _flat(node: Node) -> list[Node]:
    flat: list[Node] = []
    for key in ("offers", "Offers", "offer"):
        for entry in dicts(node.get(key))[:200]:
            nested = dicts(entry.get("offers"))[:200]
            flat.append(_with_stock_of(entry, nested) if nested else entry)
            flat += [_inherit(inner, entry) for inner in nested]
    return flat


def _with_stock_of(entry: Node, nested: list[Node]) -> Node:
    """A span of offers is in stock when one of them is."""
    if entry.get("availability"):
        return entry
    states = [inner.get("availability") for inner in nested if inner.get("availability")]
    best = next((s for s in states if read_stock(s)[0] == Stock.IN_STOCK), None)
    return entry | {"availability": best or (states[0] if states else "")}


def _inherit(inner: Node, outer: Node) -> Node:
    passed: Node = {k: v for k, v in outer.items() if k in ("priceCurrency", "availability")}
    return {**passed, **{k: v for k, v in inner.items() if v not in (None, "")}}


def read_offer(node: Node) -> Offer:
    price, raw, currency, is_range = _asked(node)
    listed = unit = None
    unit_name = ""
    for spec in dicts(node.get("priceSpecification"))[:20]:
        kind, amount = spec_kind(spec), parse_amount(text_of(spec.get("price")))
        if kind == "list" and amount is not None and (price is None or amount > price):
            listed = amount
        elif kind == "unit" and amount is not None and amount != price:
            unit, unit_name = amount, _unit(spec)
    stock, stock_raw = read_stock(node.get("availability"))
    return Offer(
        node, price, raw, currency, listed, unit, unit_name, stock, stock_raw,
        read_quantity(node.get("inventoryLevel")), is_range, text_of(node.get("url")),
    )  # fmt: skip


def _asked(node: Node) -> tuple[Decimal | None, str, str, bool]:
    currency = text_of(node.get("priceCurrency"), 20)
    value = node.get("price")
    if isinstance(value, dict):
        currency = currency or text_of(value.get("currency") or value.get("priceCurrency"), 20)
        value = value.get("value") or value.get("amount") or value.get("price") or value
    raw = text_of(value)
    if (amount := parse_amount(raw)) is not None:
        return amount, raw, currency, False
    sale = _sale_spec(node)
    if sale is not None:
        raw = text_of(sale.get("price") or sale.get("minPrice"))
        currency = currency or text_of(sale.get("priceCurrency"), 20)
        if (amount := parse_amount(raw)) is not None:
            return amount, raw, currency, False
    return *_span(node), currency, _is_span(node)


def _span(node: Node) -> tuple[Decimal | None, str]:
    for key in ("lowPrice", "highPrice"):
        raw = text_of(node.get(key))
        if (amount := parse_amount(raw)) is not None and amount > 0:
            return amount, raw
    return None, ""


def _is_span(node: Node) -> bool:
    low, high = (parse_amount(text_of(node.get(key))) for key in ("lowPrice", "highPrice"))
    return low is not None and high is not None and low < high


def _sale_spec(node: Node) -> Node | None:
    specs = [s for s in dicts(node.get("priceSpecification"))[:20] if spec_kind(s) == "sale"]
    # Where both stand, the price with tax is the one on the tag.
    taxed = [s for s in specs if str(s.get("valueAddedTaxIncluded", "")).lower() == "true"]
    return next(iter(taxed or specs), None)


def spec_kind(spec: Node) -> str:
    """sale, list, unit or rate: what a price specification is a price of."""
    kind = text_of(spec.get("priceType")).rsplit("/", 1)[-1].replace(" ", "").lower()
    if kind in LIST_KINDS:
        return "list"
    if any(spec.get(key) for key in RATE_KEYS) or "installment" in kind or "member" in kind:
        return "rate"
    if _is_unit(spec):
        return "unit"
    if "delivery" in " ".join(node_types(spec)):
        return "rate"
    return "sale"


def _is_unit(spec: Node) -> bool:
    if "unitpricespecification" not in node_types(spec):
        return False
    quantity = next(iter(dicts(spec.get("referenceQuantity"))), {})
    code = text_of(quantity.get("unitCode") or spec.get("unitCode")).upper()
    one_piece = text_of(quantity.get("value")) in ("", "1") and code in ("", "C62", "H87", "EA")
    return any(spec.get(key) for key in UNIT_KEYS) and not one_piece


def _unit(spec: Node) -> str:
    quantity = next(iter(dicts(spec.get("referenceQuantity"))), spec)
    parts = (quantity.get("value"), quantity.get("unitText") or quantity.get("unitCode"))
    return " ".join(filter(None, (text_of(part, 20) for part in parts)))


def choose_offer(offers: list[Offer], url: str, currency: str = "") -> Offer | None:
    """The offer a shopper of this page takes: its own, new, bought, in stock, in this currency."""
    if len(offers) < 2:
        return offers[0] if offers else None
    order = sorted(enumerate(offers), key=lambda entry: (*_rank(entry[1], url, currency), entry[0]))
    return order[0][1]


def _rank(offer: Offer, url: str, currency: str) -> tuple[bool, ...]:
    return (
        offer.price is None,
        offer.price == 0,
        _word(offer.node.get("itemCondition")) in USED,
        _word(offer.node.get("businessFunction")) in LEASES,
        bool(currency) and bool(offer.currency) and offer.currency.upper() != currency,
        not _own(offer, url),
        offer.stock in (Stock.OUT_OF_STOCK, Stock.DISCONTINUED),
    )


def _own(offer: Offer, url: str) -> bool:
    """Named by the query of this page, as a variant is, not by its path alone."""
    _, _, query = url.partition("?")
    return bool(query) and query in offer.url and same_page(offer.url, url)


def _word(value: Any) -> str:
    return text_of(next(iter(every(value)), "")).rsplit("/", 1)[-1].lower()
