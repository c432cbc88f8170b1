"""Shop platforms, and the public lists of products that some of them keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
from selectolax.lexbor import LexborHTMLParser

from extraction.items import Stock
from extraction.numbers import parse_amount

SHOPIFY = "shopify"
WOOCOMMERCE = "woocommerce"
# The first that is found in the page is it.
MARKS: tuple[tuple[str, bytes], ...] = (
    (SHOPIFY, rb"cdn\.shopify\.com|Shopify\.theme|/cdn/shop/|myshopify\.com"),
    (
        WOOCOMMERCE,
        rb"plugins/woocommerce|woocommerce-(?:page|product|loop|js)|wc_add_to_cart_params",
    ),
    ("magento", rb"data-mage-init|Magento_|mage/cookies"),
    ("shopware", rb"shopware|/bundles/storefront/"),
    ("prestashop", rb"prestashop"),
    ("bigcommerce", rb"cdn\d*\.bigcommerce\.com|bigcommerce\.com/s-"),
    ("salesforce", rb"demandware\.(?:static|store)|dwvar_"),
    ("wix", rb"static\.wixstatic\.com|wixstores"),
    ("squarespace", rb"static1\.squarespace\.com|Squarespace\.Constants"),
    ("opencart", rb"catalog/view/theme|route=product/product"),
    ("jtl", rb"jtl_token|JTL-Shop"),
    ("oxid", rb"oxid-?esales|OXID eShop"),
)
PATTERNS = tuple((name, re.compile(mark, re.IGNORECASE)) for name, mark in MARKS)
SHOPIFY_PAGE = 250
WOO_PAGE = 100
MAX_TEXT = 5000
DIGITS = re.compile(r"\d{8}|\d{12,14}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A product as its shop's own list shows it."""

    url: str
    name: str
    price: Decimal | None = None
    list_price: Decimal | None = None
    currency: str = ""
    stock: Stock = Stock.UNKNOWN
    sku: str = ""
    gtin: str = ""
    brand: str = ""
    category: str = ""
    description: str = ""
    image_url: str = ""


@dataclass(frozen=True, slots=True)
class FeedPage:
    platform: str
    items: tuple[Listed, ...]
    # Where the list goes on; empty on its last page.
    next_url: str = ""


def detect_platform(body: bytes, headers: Mapping[str, str] | None = None) -> str:
    """The name of the shop software, or nothing where it does not show."""
    told = " ".join(f"{name}: {text}" for name, text in (headers or {}).items()).lower()
    if "x-shopid" in told or "powered-by: shopify" in told:
        return SHOPIFY
    head = body[:500_000]
    return next((name for name, pattern in PATTERNS if pattern.search(head)), "")


def feed_url(platform: str, origin: str, page: int = 1) -> str:
    """The public list of a platform's shops; empty where there is none."""
    if platform == SHOPIFY:
        return f"{origin}/products.json?limit={SHOPIFY_PAGE}&page={page}"
    if platform == WOOCOMMERCE:
        return f"{origin}/wp-json/wc/store/v1/products?per_page={WOO_PAGE}&page={page}"
    return ""


def read_feed(body: bytes, url: str) -> FeedPage | None:
    """The products of one page of a list; None where it is none."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(data, dict) and isinstance(data.get("products"), list):
        return _page(SHOPIFY, data["products"], url, origin, SHOPIFY_PAGE)
    if isinstance(data, list) and "/wc/store/" in parts.path:
        return _page(WOOCOMMERCE, data, url, origin, WOO_PAGE)
    return None


def _page(platform: str, rows: list[Any], url: str, origin: str, size: int) -> FeedPage:
    read = _shopify if platform == SHOPIFY else _woo
    found = [read(row, origin) for row in rows if isinstance(row, dict)]
    number = parse_qs(urlsplit(url).query).get("page", ["1"])[0]
    more = len(rows) >= size and number.isdigit()
    following = feed_url(platform, origin, int(number) + 1) if more else ""
    return FeedPage(platform, tuple(one for one in found if one is not None), following)


def _shopify(row: dict[str, Any], origin: str) -> Listed | None:
    handle, name = _text(row.get("handle")), _text(row.get("title"), 500)
    if not handle or not name or "/" in handle:
        return None
    variants = [one for one in _list(row.get("variants")) if isinstance(one, dict)]
    first = variants[0] if variants else {}
    price, before = parse_amount(first.get("price")), parse_amount(first.get("compare_at_price"))
    return Listed(
        url=f"{origin}/products/{handle}",
        name=name,
        price=price,
        list_price=before if before and price is not None and before > price else None,
        stock=_shopify_stock(variants),
        sku=_text(first.get("sku"), 255),
        gtin=_gtin(first.get("barcode")),
        brand=_text(row.get("vendor"), 255),
        category=_text(row.get("product_type"), 500),
        description=_plain(row.get("body_html")),
        image_url=_first_image(row.get("images"), "src"),
    )


def _shopify_stock(variants: list[dict[str, Any]]) -> Stock:
    told = [one["available"] for one in variants if isinstance(one.get("available"), bool)]
    if not told:
        return Stock.UNKNOWN
    return Stock.IN_STOCK if any(told) else Stock.OUT_OF_STOCK


def _woo(row: dict[str, Any], origin: str) -> Listed | None:
    url, name = _text(row.get("permalink")), _plain(row.get("name"))[:500]
    if urlsplit(url).netloc != urlsplit(origin).netloc or not name:
        return None
    prices = row["prices"] if isinstance(row.get("prices"), dict) else {}
    price, regular = _minor(prices, "price"), _minor(prices, "regular_price")
    available = row.get("is_in_stock")
    categories = [one for one in _list(row.get("categories")) if isinstance(one, dict)]
    currency = _text(prices.get("currency_code")).upper()
    return Listed(
        url=url,
        name=name,
        price=price,
        list_price=regular if regular and price is not None and regular > price else None,
        currency=currency if re.fullmatch("[A-Z]{3}", currency) else "",
        stock=_woo_stock(available),
        sku=_text(row.get("sku"), 255),
        category=_plain(categories[0].get("name"))[:500] if categories else "",
        description=_plain(row.get("description") or row.get("short_description")),
        image_url=_first_image(row.get("images"), "src"),
    )


def _woo_stock(available: Any) -> Stock:
    if not isinstance(available, bool):
        return Stock.UNKNOWN
    return Stock.IN_STOCK if available else Stock.OUT_OF_STOCK


def _minor(prices: dict[str, Any], name: str) -> Decimal | None:
    """Amounts come in the smallest unit of their currency."""
    digits, text = prices.get("currency_minor_unit", 2), _text(prices.get(name))
    if (
        not text.isdecimal()
        or len(text) > 12
        or not isinstance(digits, int)
        or not 0 <= digits <= 4
    ):
        return None
    return Decimal(int(text)).scaleb(-digits)


def _first_image(value: Any, key: str) -> str:
    first = next((one for one in _list(value) if isinstance(one, dict)), {})
    link = _text(first.get(key))
    return link if link.startswith(("http://", "https://")) else ""


def _gtin(value: Any) -> str:
    text = _text(value)
    return text if DIGITS.fullmatch(text) else ""


def _plain(value: Any) -> str:
    text = _text(value, 100_000)
    if "<" in text or "&" in text:
        body = LexborHTMLParser(text).body
        text = body.text(separator=" ") if body else ""
    return " ".join(text.split())[:MAX_TEXT]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, limit: int = 2048) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = str(value).replace("\x00", "").encode("utf-8", "ignore").decode()
    return text.strip()[:limit]
