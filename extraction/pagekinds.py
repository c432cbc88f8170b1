"""Whether a page is one product's: walls and errors by what they say, the rest by weighing the signs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from extraction.items import Hints, NoProduct, PageKind
from extraction.visible import VisibleReading
from extraction.walks import Walk

# A wall, an error or an empty shell says little; a page with more texts is a real one.
FEW_TEXTS = 60
SHELL_TEXTS = 12
BOT_WALL = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|not a robot|verify (?:that )?you are|unusual traffic|automated (?:access|requests|queries)|access (?:to this page has been )?denied"
    r"|just a moment|checking your browser|attention required|pardon our interruption|request (?:unsuccessful|blocked)|security check|bot detection|enable cookies and reload"
    r"|you have been blocked|ddos protection|incapsula|please wait while we verify|robot check|zugriff verweigert|accès refusé|acceso denegado|доступ ограничен",
    re.IGNORECASE,
)  # fmt: skip
CONSENT = re.compile(
    r"before you continue|we value your privacy|accept (?:all )?cookies|cookie consent|alle cookies akzeptieren|tout accepter|aceptar todas|accetta tutti|age verification"
    r"|are you (?:over|at least) \d\d|confirm your age",
    re.IGNORECASE,
)  # fmt: skip
SCRIPT_NEEDED = re.compile(
    r"enable javascript|javascript (?:is )?(?:required|disabled|must be)|requires javascript|turn on javascript|javascript aktivieren|activer javascript|loading",
    re.IGNORECASE,
)  # fmt: skip
NOT_FOUND = re.compile(
    r"\b404\b|(?:page|product|item|site|url|content|listing)[\w\s']{0,30}(?:not (?:be )?found|no longer (?:exists?|available)|does(?: not|n't) exist|removed|unavailable|missing)"
    r"|not found|can(?:'|no)?t find (?:the|that|this) page|nothing (?:was )?found|page you (?:are looking|requested)|oops|nicht gefunden|existiert nicht|nicht mehr verfügbar"
    r"|introuvable|n'existe (?:pas|plus)|no (?:se ha )?encontrad[ao]|no existe|non trovat[ao]|não encontrad[ao]|niet gevonden|nie znaleziono|nie istnieje|nenalezen|neexistuje|nenájden"
    r"|hittades inte|finns inte|ikke fundet|ikke funnet|ei löyt|nem található|nu (?:a fost|există)|bulunamad|не найден|не существует|не знайден|見つかりません|找不到|찾을 수 없",
    re.IGNORECASE,
)  # fmt: skip
ARTICLES = frozenset(
    (
        *("article", "newsarticle", "blogposting", "recipe", "discussionforumposting", "qapage"),
        *("event", "musicevent", "jobposting", "movie", "tvseries", "techarticle", "howto"),
        *("course", "report", "liveblogposting", "collegeoruniversity"),
    )
)
PRODUCTS = frozenset(["product", "productgroup", "individualproduct", "vehicle", "book"])
LISTS = frozenset(["itemlist", "collectionpage", "searchresultspage", "offercatalog"])
PRODUCT_PATH = re.compile(
    r"/(?:products?|p|dp|item|itm|prod|produkt|produit|producto|prodotto|produto|artikel|tovar|product-page|gp/product|goods|listing|ip|pd|pdp|sku|isbn|app|evento|event)s?/[^/]+"
    r"|[/-]p[-_]?\d{3,}|\.p\d*(?:\.html)?$|/\d{5,}(?:\.html?)?$|-\d{4,}(?:\.html?)?$|[?&](?:product|sku|item|prod|goods|p)(?:_?id)?=|product\.(?:php|asp)|/dp/",
    re.IGNORECASE,
)  # fmt: skip
CATEGORY_PATH = re.compile(
    r"/(?:collections?|categor(?:y|ies|ie|ia)|kategori[ea]?|c|cat|search|suche|shop|browse|brands?|tags?|catalog(?:ue)?|catalogsearch|department|sale|new-arrivals|b|store)(?:/[^/]+)?/?$"
    r"|[?&](?:q|query|search|s|k|keyword|searchterm)=|/collection-",
    re.IGNORECASE,
)  # fmt: skip
ARTICLE_PATH = re.compile(
    r"/(?:blogs?|news|articles?|posts?|guides?|recipes?|stories|story|press|magazine|forum|threads?|topics?|help|support|faq|docs|about|careers?|learn|community|wiki|resources)/",
    re.IGNORECASE,
)  # fmt: skip
# What speaks for and against a product page; the sum decides.
SIGNS: dict[str, float] = {
    "price": 2.0,
    "cart": 1.5,
    "sku": 1.0,
    "gtin": 1.5,
    "stock": 0.5,
    "markup": 2.0,
    "product_type": 2.0,
    "product_path": 2.0,
    "category_path": -3.0,
    "article_path": -2.0,
    "article_type": -2.5,
    "list_type": -1.0,
    "home_page": -4.0,
    "repeated_prices": -1.5,
    "many_prices": -2.0,
    "unmarked": -1.0,
    "no_price": -0.5,
}
ENOUGH = 1.5


def judge_page(
    walk: Walk,
    *,
    url: str,
    hints: Hints,
    visible: VisibleReading,
    marked_up: bool = False,
    markup_types: frozenset[str] = frozenset(),
    open_graph_type: str = "",
) -> NoProduct | None:
    """Why this is no product page; None if it may be one."""
    wall = _wall(walk, visible, marked_up=marked_up)
    if wall is not None:
        return wall
    types = frozenset(kind.lower() for kind in markup_types)
    kind = open_graph_type.strip().lower()
    signs = _signs(kind, url, visible, marked_up=marked_up, types=types)
    total = sum(SIGNS[sign] for sign in signs)
    if total >= ENOUGH:
        return None
    shown = ", ".join(f"{sign} {SIGNS[sign]:+.1f}" for sign in sorted(signs)) or "nothing"
    return NoProduct(f"too little speaks for a product page: {shown}", _kind(signs))


def _wall(walk: Walk, visible: VisibleReading, *, marked_up: bool) -> NoProduct | None:
    """Bot walls, consent walls, empty shells and error pages."""
    tree = walk.tree
    heading = " ".join(_text(node) for node in (walk.title, *walk.headings[:1]))
    if NOT_FOUND.search(heading) and visible.price is None:
        return NoProduct("the page says that it was not found", PageKind.SOFT_404)
    if visible.price is not None or visible.texts > FEW_TEXTS:
        return None
    body = tree.body.text(separator=" ")[:20_000] if tree.body is not None else ""
    said = f"{heading} {body}"
    if BOT_WALL.search(said):
        return NoProduct("the site asks whether we are a robot", PageKind.BOT_WALL)
    if marked_up:
        return None
    if visible.texts <= SHELL_TEXTS:
        return _shell(tree, said)
    if CONSENT.search(said) and not visible.has_cart:
        return NoProduct("the site asks for consent first", PageKind.CONSENT)
    return None


def _shell(tree: LexborHTMLParser, said: str) -> NoProduct | None:
    if NOT_FOUND.search(said):
        return NoProduct("the page says that it was not found", PageKind.SOFT_404)
    if tree.css_first("script") is not None:
        return NoProduct("the page is drawn by scripts", PageKind.SCRIPT_ONLY)
    if not said.strip():
        return NoProduct("the page is empty", PageKind.EMPTY)
    return None


def _text(node: LexborNode | None) -> str:
    return node.text(strip=True)[:300] if node is not None else ""


def _signs(
    kind: str,
    url: str,
    visible: VisibleReading,
    *,
    marked_up: bool,
    types: frozenset[str],
) -> set[str]:
    shown = {
        "price": visible.price is not None,
        "no_price": visible.price is None,
        "cart": visible.has_cart,
        "sku": visible.sku is not None,
        "gtin": visible.gtin is not None,
        "stock": visible.stock is not None and visible.price is not None,
        "markup": marked_up,
        "product_type": "product" in kind,
        "article_type": kind in ("article", "blog") or bool(types & ARTICLES),
        "list_type": bool(types & LISTS),
        "repeated_prices": visible.repeated >= 6 and visible.price is None,
        "many_prices": visible.repeated >= 30 and visible.price is None and not types & PRODUCTS,
        "unmarked": visible.price is None and not marked_up and "product" not in kind,
    }
    return {sign for sign, is_shown in shown.items() if is_shown} | _path_signs(url)


def _path_signs(url: str) -> set[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return set()
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if url and parts.path in ("", "/") and not PRODUCT_PATH.search(path):
        return {"home_page"}
    if PRODUCT_PATH.search(path):
        return {"product_path"}
    if CATEGORY_PATH.search(parts.path) or CATEGORY_PATH.search(path):
        return {"category_path"}
    return {"article_path"} if ARTICLE_PATH.search(path) else set()


def _kind(signs: set[str]) -> PageKind:
    if signs & {"category_path", "repeated_prices", "list_type"}:
        return PageKind.CATEGORY
    if signs & {"article_path", "article_type"}:
        return PageKind.ARTICLE
    return PageKind.NO_PRODUCT
