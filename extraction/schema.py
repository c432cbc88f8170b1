"""A schema.org product, from JSON-LD, microdata or RDFa alike, as a reading."""

from __future__ import annotations

from decimal import Decimal

from extraction.identity import gtin_of, node_types, product_id_from_url, sku_of
from extraction.items import Method, Stock, Variant
from extraction.numbers import parse_amount
from extraction.offers import Offer, choose_offer, offers_of
from extraction.readings import Reading
from extraction.stock import read_quantity
from extraction.texts import Node, dicts, link_of, links_of, text_of

MOST_VARIANTS = 500
AXES = ("color", "size", "material", "pattern", "flavor", "model", "width", "suggestedAge")


def read_product(node: Node, url: str, method: Method, currency: str = "") -> Reading:
    reading = Reading(method, types=node_types(node), url=link_of(node.get("url"), url))
    members = dicts(node.get("hasVariant"))[:MOST_VARIANTS]
    offers = offers_of(node)
    own = choose_offer(offers, url, currency)
    member: Node = {}
    if members and (own is None or own.price is None):
        member, own = _choose_member(members, url, currency)
    _put_identity(reading, node, member, own, url)
    if own is not None:
        _put_offer(reading, own)
        spread = {o.price for o in offers if o.price} if len(offers) > 1 else set()
        reading.put("is_price_range", True if own.is_range or len(spread) > 1 else None)
    _put_page(reading, node, url)
    reading.variants = _variants(members) or _offer_variants(offers)
    return reading


def _choose_member(members: list[Node], url: str, currency: str) -> tuple[Node, Offer | None]:
    """The variant this URL names, else the first that can be bought."""
    wanted = product_id_from_url(url)
    priced = [(m, choose_offer(offers_of(m), url, currency)) for m in members]
    for member, offer in priced:
        link = text_of(member.get("url") or member.get("@id"))
        if wanted and (wanted == sku_of(member) or ("?" in url and link.endswith(url[-40:]))):
            return member, offer
    sold = [(m, o) for m, o in priced if o is not None and o.price is not None]
    ready = [(m, o) for m, o in sold if o.stock not in (Stock.OUT_OF_STOCK, Stock.DISCONTINUED)]
    return next(iter(ready or sold or priced))


def _put_identity(reading: Reading, node: Node, member: Node, own: Offer | None, url: str) -> None:
    offer = own.node if own else {}
    reading.put("name", text_of(node.get("name") or member.get("name"), 500))
    reading.put("sku", sku_of(member) or sku_of(node) or sku_of(offer))
    reading.put("gtin", gtin_of(member) or gtin_of(node) or gtin_of(offer))
    reading.put("mpn", text_of(member.get("mpn") or node.get("mpn") or offer.get("mpn"), 255))
    brand = text_of(node.get("brand") or member.get("brand"), 255)
    reading.put("brand", brand or text_of(node.get("manufacturer"), 255))


def _put_offer(reading: Reading, offer: Offer) -> None:
    reading.put("price", offer.price, offer.raw)
    reading.put("currency", offer.currency, offer.currency)
    reading.put("list_price", offer.list_price)
    reading.put("unit_price", offer.unit_price)
    reading.put("unit", offer.unit if offer.unit_price is not None else "")
    if offer.stock is not Stock.UNKNOWN:
        reading.put("stock", offer.stock, offer.stock_raw)
    reading.put("stock_quantity", offer.quantity)


def _put_page(reading: Reading, node: Node, url: str) -> None:
    category = node.get("category")
    reading.put("category", text_of(category, 500))
    reading.put("description", text_of(node.get("description"), 5000))
    reading.put("images", links_of(node.get("image"), url))
    reading.put("canonical_url", reading.url)
    rating = next(iter(dicts(node.get("aggregateRating"))), None)
    if rating is not None:
        reading.put("rating", _rating(rating))
        count = rating.get("reviewCount") or rating.get("ratingCount")
        reading.put("review_count", read_quantity(count))


def _rating(node: Node) -> Decimal | None:
    amount = parse_amount(text_of(node.get("ratingValue")))
    return amount if amount is not None and amount <= 100 else None


def _variants(members: list[Node]) -> tuple[Variant, ...]:
    rows = []
    for member in members:
        offer = choose_offer(offers_of(member), "")
        name = text_of(member.get("name"), 255)
        rows.append(_row(member, offer, _options(member), name))
    return tuple(rows)


def _offer_variants(offers: list[Offer]) -> tuple[Variant, ...]:
    """Offers with numbers of their own are variants, as Shopify themes write them."""
    rows = [o for o in offers if o.node.get("sku") or gtin_of(o.node)]
    if len(rows) < 2:
        return ()
    return tuple(_row(o.node, o, _offer_options(o.node), "") for o in rows[:MOST_VARIANTS])


def _offer_options(node: Node) -> tuple[tuple[str, str], ...]:
    name = text_of(node.get("name"), 255)
    return (("option", name),) if name else ()


def _row(
    node: Node, offer: Offer | None, options: tuple[tuple[str, str], ...], name: str
) -> Variant:
    sku, gtin = sku_of(node), gtin_of(node)
    label = " / ".join(value for _, value in options)
    return Variant(
        key=sku or gtin or product_id_from_url(text_of(node.get("url"))) or label or name,
        options=options,
        price=offer.price if offer else None,
        currency=offer.currency if offer else "",
        stock=offer.stock if offer else Stock.UNKNOWN,
        sku=sku,
        gtin=gtin or (gtin_of(offer.node) if offer else ""),
        list_price=offer.list_price if offer else None,
    )


def _options(node: Node) -> tuple[tuple[str, str], ...]:
    found = [(axis, text_of(node.get(axis), 255)) for axis in AXES]
    more = dicts(node.get("additionalProperty"))[:20]
    found += [(text_of(e.get("name"), 100), text_of(e.get("value"), 255)) for e in more]
    return tuple((axis, value) for axis, value in found if axis and value)
