"""Which price is asked when the sources of a page differ: the one a shopper sees."""

from __future__ import annotations

import re
from decimal import Decimal

from extraction.items import Field, Lost, Method
from extraction.readings import Reading
from extraction.visible import VisibleReading

# The reader of the visible page overrules data only when it is this sure. Measured on real
# pages that disagree: right in 4 of 5 above, in none below.
OVERRULES_FROM = 0.7
MARKUP = (Method.JSON_LD, Method.MICRODATA, Method.RDFA, Method.OPENGRAPH, Method.EMBEDDED)
FREE = re.compile(
    rb">\s*(?:free|free to play|play for free|free download|gratis|kostenlos|gratuit|gratuito"
    rb"|za darmo|zdarma|ingyenes|ilmainen|\xe5\x85\x8d\xe8\xb2\xbb|\xe7\x84\xa1\xe6\x96\x99)\s*<",
    re.IGNORECASE,
)


def choose_price(
    readings: list[Reading], visible: VisibleReading, body: bytes
) -> tuple[Reading | None, list[Lost]]:
    """The reading whose price counts, and the prices that lost against it."""
    priced = [r for r in readings if _believable(r, body)]
    lost = [
        _lost(r, "zero in the data, and the page does not say free")
        for r in readings
        if r not in priced and r.value("price") is not None
    ]
    if not priced:
        return None, lost
    chosen, why = _choose(priced, visible)
    others = [r for r in priced if r.value("price") != chosen.value("price")]
    return chosen, [*lost, *(_lost(r, why) for r in others)]


def _believable(reading: Reading, body: bytes) -> bool:
    price = reading.value("price")
    return price is not None and (price != 0 or FREE.search(body) is not None)


def _choose(priced: list[Reading], visible: VisibleReading) -> tuple[Reading, str]:
    lead = priced[0]
    seen = next((r for r in priced if r.method is Method.VISIBLE), None)
    if lead.method not in MARKUP or not lead.value("price"):
        return lead, f"{lead.method} is trusted more"
    agreeing = {r.value("price") for r in priced if r is not lead}
    alone = seen is not lead and lead.value("price") not in agreeing
    if seen is not None and alone and seen.fields["price"].confidence >= OVERRULES_FROM:
        return seen, "the page shows another price"
    return _better_placed(priced, visible) or lead, f"{lead.method} is trusted more"


def _better_placed(priced: list[Reading], visible: VisibleReading) -> Reading | None:
    """Of data that differs, what stands in the better place of the page."""
    marked = [r for r in priced if r.method in MARKUP]
    if len({r.value("price") for r in marked}) < 2:
        return None
    scores: dict[Decimal, float] = {}
    for candidate in visible.candidates:
        if candidate.name == "price" and candidate.score is not None:
            amount = candidate.value
            scores[amount] = max(candidate.score, scores.get(amount, candidate.score))
    placed = [(scores[r.value("price")], r) for r in marked if r.value("price") in scores]
    return max(placed, key=lambda entry: entry[0])[1] if placed else None


def _lost(reading: Reading, why: str) -> Lost:
    field = reading.fields["price"]
    return Lost("price", field.value, field.source, field.raw, why)


def money_of(
    chosen: Reading | None, readings: list[Reading], home: str
) -> tuple[dict[str, Field], list[Lost]]:
    """Price, currency and list price from one mouth; others only where it is silent."""
    if chosen is None:
        return {}, []
    money: dict[str, Field] = {
        n: chosen.fields[n] for n in ("price", "currency", "is_price_range") if n in chosen.fields
    }
    for reading in readings:
        for name in ("currency", "list_price", "unit_price", "unit"):
            field = reading.fields.get(name)
            if field is not None and name not in money:
                money[name] = field
    if "currency" not in money and home:
        money["currency"] = Field(home, Method.URL, home, 0.5)
    listed = money.get("list_price")
    lost = []
    if listed is not None and listed.value <= money["price"].value:
        lost.append(
            Lost("list_price", listed.value, listed.source, listed.raw, "not above the price")
        )
        del money["list_price"]
    return money, lost
