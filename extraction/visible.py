"""What a shopper would read on the page: its price, stock, name and numbers, without any markup."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from extraction.currencies import USUAL, host_currency, iso_code, locale_currency
from extraction.items import Field, Hints, Lost, Method, Stock
from extraction.numbers import Kind
from extraction.visible_anchors import find_anchors
from extraction.visible_identity import read_gtin, read_name, read_sku
from extraction.visible_outline import Outline, outline
from extraction.visible_phrases import Phrases, find_phrases
from extraction.visible_prices import Anchors, Candidate, price_candidates
from extraction.visible_score import WEIGHTS, choose, score
from extraction.visible_stock import read_stock
from extraction.walks import Walk

# How many of the candidates that lost are kept for the debugger.
KEPT = 12
# So many buy buttons, and no one price, are a list of products.
LIST = 6
# A list price is higher, but hardly ever by more.
DEAREST = 10


@dataclass(frozen=True, slots=True)
class VisibleReading:
    price: Field | None = None
    list_price: Field | None = None
    unit_price: Field | None = None
    unit: str = ""
    is_price_range: bool = False
    currency: Field | None = None
    stock: Field | None = None
    stock_quantity: Field | None = None
    name: Field | None = None
    sku: Field | None = None
    gtin: Field | None = None
    candidates: tuple[Lost, ...] = ()
    # What the judge of page kinds asks.
    has_cart: bool = False
    texts: int = 0
    price_like: int = 0
    repeated: int = 0


@dataclass(slots=True)
class Sight:
    """The page looked at once; everything is read from here."""

    page: Outline
    phrases: Phrases
    anchors: Anchors
    title: str
    home: str
    candidates: list[Candidate]


def look(walk: Walk, *, url: str, hints: Hints) -> Sight:
    page = outline(walk)
    phrases = find_phrases(page.texts)
    title = _title(walk)
    anchors = find_anchors(page, phrases, title)
    home = hints.currency or _home(walk.tree, url, hints)
    return Sight(page, phrases, anchors, title, home, price_candidates(page, anchors, home))


def read_visible(walk: Walk, *, url: str, hints: Hints) -> VisibleReading:
    sight = look(walk, url=url, hints=hints)
    score(sight.candidates)
    winner, chance, reason = choose(sight.candidates)
    stock = read_stock(sight.page, sight.phrases, sight.anchors, winner.place if winner else -1)
    page = sight.page
    name, name_element = read_name(page, sight.anchors, sight.title)
    sku, sku_element = read_sku(page, sight.phrases, sight.anchors)
    gtin, gtin_element = read_gtin(page, sight.phrases)
    return VisibleReading(
        price=_price(sight, winner, chance),
        list_price=_list_price(sight, winner),
        unit_price=_unit_price(sight, winner),
        is_price_range=winner is not None and _is_range(winner),
        currency=_currency(sight, winner),
        stock=_field(sight, stock.stock, stock.raw, stock.confidence, stock.element)
        if stock.stock is not Stock.UNKNOWN
        else None,
        stock_quantity=_field(sight, stock.quantity, stock.raw, stock.confidence, stock.element)
        if stock.quantity is not None
        else None,
        name=_field(sight, name, name, 0.8, name_element) if name else None,
        sku=_field(sight, sku, sku, 0.6, sku_element) if sku else None,
        gtin=_field(sight, gtin, gtin, 0.8, gtin_element) if gtin else None,
        candidates=tuple(_lost(sight, winner, reason)),
        has_cart=bool(sight.anchors.carts)
        and (winner is not None or len(sight.anchors.carts) < LIST),
        texts=len(page.texts),
        price_like=len(sight.candidates),
        repeated=sum(
            "same_shape" in c.features and c.features["same_shape"] > 0.5 for c in sight.candidates
        ),
    )


def _title(walk: Walk) -> str:
    node = walk.title
    return node.text(strip=True)[:500] if node is not None else ""


def _home(tree: LexborHTMLParser, url: str, hints: Hints) -> str:
    """The currency of the page's country: by the caller's locale, the page's language tag, the domain."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    root = tree.css_first("html")
    language = (root.attributes.get("lang") or "") if root is not None else ""
    regional = locale_currency(language) if "-" in language or "_" in language else ""
    return (
        locale_currency(hints.locale)
        or host_currency(host)
        or regional
        or locale_currency(language)
    )


def _field(sight: Sight, value: object, raw: str, confidence: float, element: int) -> Field:
    place = sight.page.place(element) if element >= 0 else ""
    return Field(value, Method.VISIBLE, raw, round(confidence, 3), place)


def _price(sight: Sight, winner: Candidate | None, chance: float) -> Field | None:
    if winner is None:
        return None
    return _field(sight, _plain(winner.amount), winner.text, chance, winner.element)


def _plain(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.0001")).normalize() + 0


def _currency(sight: Sight, winner: Candidate | None) -> Field | None:
    """By the winner's sign, else by the signs of the other prices, else by the country."""
    if winner is None:
        return None
    symbols = [winner.price.symbol, *(one.price.symbol for one in sight.candidates)]
    for symbol in symbols:
        code = iso_code(symbol, sight.home) or USUAL.get(symbol, "") if symbol else ""
        if code:
            return _field(sight, code, symbol, 0.8, winner.element)
    return _field(sight, sight.home, "", 0.5, -1) if sight.home else None


def _near_winner(sight: Sight, winner: Candidate, reach: int = 12) -> list[Candidate]:
    return [
        one
        for one in sight.candidates
        if one is not winner and abs(one.place - winner.place) <= reach
    ]


def _list_price(sight: Sight, winner: Candidate | None) -> Field | None:
    """A higher price beside the winner that is struck through or named as the old one."""
    if winner is None:
        return None
    for one in _near_winner(sight, winner):
        named = one.price.kind is Kind.WAS or any(
            name in one.features for name in ("own_old", "own_struck", "near_struck")
        )
        if named and winner.amount < one.amount < winner.amount * DEAREST:
            return _field(sight, _plain(one.amount), one.text, 0.7, one.element)
    return None


def _unit_price(sight: Sight, winner: Candidate | None) -> Field | None:
    if winner is None:
        return None
    for one in _near_winner(sight, winner):
        if one.price.kind is Kind.UNIT or "own_unit" in one.features:
            return _field(sight, _plain(one.amount), one.text, 0.6, one.element)
    return None


RANGES = ("from", "ab ", "à partir", "desde", "da ", "vanaf", "od ", "från", "fra", "alkaen", "от ")


def _is_range(winner: Candidate) -> bool:
    return winner.text.lower().startswith(RANGES)


def _lost(sight: Sight, winner: Candidate | None, reason: str) -> list[Lost]:
    ranked = sorted(sight.candidates, key=lambda one: -one.score)[:KEPT]
    return [
        Lost(
            "price",
            one.amount,
            Method.VISIBLE,
            one.text,
            "won" if one is winner else reason or _why(one),
            round(one.score, 2),
        )
        for one in ranked
    ]


def _why(one: Candidate) -> str:
    """The features that spoke most against a candidate."""
    parts = sorted((WEIGHTS.get(name, 0.0) * value, name) for name, value in one.features.items())
    return ", ".join(f"{name} {weight:+.1f}" for weight, name in parts[:3] if weight < 0)
