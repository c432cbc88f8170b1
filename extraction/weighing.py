"""The cascade: what the sources of a page say, weighed into one answer."""

from __future__ import annotations

from extraction.embedded import read_embedded
from extraction.identity import product_id_from_url
from extraction.items import Field, Method, NoProduct, PageKind, ProductItem, Stock
from extraction.learned import read_learned
from extraction.markup import home_currency, main_products, parser_of, settle_currency
from extraction.merging import build_item, identify, merge
from extraction.naming import alike
from extraction.opengraph import calls_itself_product, read_opengraph
from extraction.pagekinds import judge_page
from extraction.pages import Page
from extraction.pricing import choose_price, money_of
from extraction.readings import Reading
from extraction.sites import Parser
from extraction.sites.rules import read_rules
from extraction.states import states
from extraction.sureness import says_all, shown
from extraction.visible import VisibleReading, read_visible

UNREAD = VisibleReading()
# Where no markup speaks: how sure the reader of the visible page must be of its price beside a
# cart and many like prices, and without a cart at all; and how much a lone button says of stock.
LIKELY = 0.5
SURE_WITHOUT_CART = 0.8
BUTTON_ALONE = 0.55
# So many prices of one shape are a list, whatever the head calls the page.
CROWD = 20
SPOKEN = (Method.JSON_LD, Method.MICRODATA, Method.RDFA)
MONEY = ("price", "currency", "list_price", "unit_price", "unit", "is_price_range")
VISIBLE = (
    "name", "price", "list_price", "unit_price", "currency", "stock", "stock_quantity", "sku",
    "gtin",
)  # fmt: skip


def weigh(page: Page) -> ProductItem | NoProduct:
    """Every source read; the first that names the main product leads."""
    parser = parser_of(page)
    site = read_rules(parser, page.tree, page.hints, home_currency(page))
    markup = main_products(page, lambda: _titles(page))
    opengraph = read_opengraph(page.meta, page.url)
    settle_currency(opengraph, page)
    visible = _look(page, [site, *markup])
    readings = _in_order(page, [site, *markup], opengraph, visible)
    marked = bool(markup) or calls_itself_product(page.meta) or bool(opengraph.value("price"))
    refusal = None if visible is UNREAD else _refuse(page, readings, visible, marked=marked)
    if refusal is not None:
        return refusal
    if visible is not UNREAD and not _sold(readings, visible, marked=marked):
        return NoProduct("no product data on the page")
    return _decide(page, readings, visible, parser)


def _sold(readings: list[Reading], visible: VisibleReading, *, marked: bool) -> bool:
    """Whether anything says that the page sells one thing: data, a sure price, a stock line."""
    prices = [r.fields["price"] for r in readings if r.value("price") is not None]
    if marked:
        spoken = any(r.value("name") for r in readings if r.method in SPOKEN)
        return spoken or bool(prices) or visible.repeated < CROWD or visible.has_cart
    if any(r.fields for r in readings if r.method is Method.SITE):
        return True
    said = visible.stock is not None and visible.stock.confidence > BUTTON_ALONE
    needed = SURE_WITHOUT_CART if not visible.has_cart else LIKELY if visible.repeated >= 10 else 0
    return said or any(price.confidence >= needed for price in prices)


def _look(page: Page, leading: list[Reading]) -> VisibleReading:
    """The page as a shopper sees it, left unread where markup says all and the page shows it."""
    first = next((r for r in leading if r.text("name")), None)
    if first is not None and says_all(first) and shown(first.value("price"), page.body):
        return UNREAD
    return read_visible(page.walk, url=page.url, hints=page.hints)


def _titles(page: Page) -> list[str]:
    return [*page.headings, page.meta.get("og:title", ""), page.title]


def _in_order(
    page: Page, leading: list[Reading], opengraph: Reading, visible: VisibleReading
) -> list[Reading]:
    """The readings that speak of one product, the most trusted first."""
    name = next((r.text("name") for r in leading if r.text("name")), "")
    same = [r for r in leading if not name or not r.text("name") or alike(r.text("name"), name)]
    readings = [*same, opengraph]
    if visible.price is None and not any(r.value("price") for r in readings):
        names, number = [name] if name else _titles(page), product_id_from_url(page.url)
        found = read_embedded(states(page.walk, names, number), names, number)
        if found is not None:
            settle_currency(found, page)
            readings.append(found)
    if page.hints.learned:
        readings.append(read_learned(page.tree, page.hints.learned, page.hints.currency))
    return [*readings, _as_reading(visible)]


def _refuse(
    page: Page, readings: list[Reading], visible: VisibleReading, *, marked: bool
) -> NoProduct | None:
    """Why this is no product page, if it is none."""
    strong = (Method.SITE, Method.EMBEDDED, Method.LEARNED)
    named = any(r.value("name") or r.value("price") for r in readings if r.method in strong)
    types = page.graph.types | page.microdata.types
    refusal = judge_page(
        page.walk,
        url=page.url,
        hints=page.hints,
        visible=visible,
        marked_up=marked or named,
        markup_types=frozenset(types),
        open_graph_type=page.meta.get("og:type", ""),
    )
    # Data for machines is there before the scripts that draw the page.
    drawn_later = refusal is not None and refusal.kind is PageKind.SCRIPT_ONLY
    return None if drawn_later and (marked or named) else refusal


def _decide(
    page: Page, readings: list[Reading], visible: VisibleReading, parser: Parser
) -> ProductItem | NoProduct:
    chosen, beaten = choose_price(readings, visible, page.body)
    fields, lost = merge(readings, leave_out=MONEY)
    if "name" not in fields:
        return NoProduct("a product without a name")
    money, more = money_of(chosen, readings, home_currency(page))
    fields |= money
    identify(fields, page.url)
    return build_item(
        fields,
        readings=readings,
        url=page.url,
        reason=_reason(fields),
        lost=[*beaten, *more, *lost, *visible.candidates],
        breadcrumb=page.graph.breadcrumb or page.microdata.breadcrumb,
        canonical=page.canonical,
        parser=parser.name,
    )


def _reason(fields: dict[str, Field]) -> str:
    price = fields.get("price")
    said = f"the price is from {price.source}" if price else "no price is shown"
    return f"{fields['name'].source} names the product, {said}"


def _as_reading(visible: VisibleReading) -> Reading:
    reading = Reading(Method.VISIBLE)
    for name in VISIBLE:
        field = getattr(visible, name)
        if field is not None and field.value is not Stock.UNKNOWN:
            reading.fields[name] = field
    reading.put("unit", visible.unit)
    reading.put("is_price_range", visible.is_price_range or None)
    return reading
