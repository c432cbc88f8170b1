"""What the names of elements say about their text: words of classes and ids, as data."""

from __future__ import annotations

import re
from functools import lru_cache

# Each meaning is one bit; the patterns are searched in the class, id and itemprop of an element.
MEANINGS: dict[str, str] = {
    "price": r"price|preis|prix|preci|prezzo|prijs|cena|pris(?![mot])|preco|preço|amount|fiyat|money|cost|hind|kaina|hinta",
    "now": r"sale|special|\bnow|current|final|actual|promo|offer|discounted|our-?price|reduced|new|action|today|selling|is-?price",
    "old": r"\bold|old-?price|price-?old|\bwas|strike|list-?price|price-?list|regular|before|crossed|cross(?!-?sell)|original"
    r"|compare|msrp|rrp|uvp|retail|previous|line-?through|statt|standard|prev|rrp|full-?price|basic|pvp|vecch|anterior|ancien",
    "saving": r"sav(?:e|ing)|discount(?!ed)|percent|\boff\b|badge|rabat|flag|label",
    "unit": r"unit|per-?(?:kg|100|piece|liter|item)|base-?price|price-?per|ppu|grundpreis|measure",
    "instalment": r"instal|month|financ|credit|klarna|affirm|afterpay|leasing|\brate\b|sezzle|clearpay|laybuy|zip-?pay|paypal|parcel",
    "shipping": r"shipp|deliver|versand|freight|livraison|postage|envio",
    "member": r"member|loyal|club|prime|subscri|autoship|wholesale|trade-?in|used|marketplace|reward|point|seller|bulk|tier|volume|b2b",
    "tax": r"excl|without-?tax|netto|\bnet\b|ex-?vat|no-?tax|pretax",
    "related": r"relat|recommend|up-?sell|cross-?sell|similar|also|recent|viewed|bundle|accessor|sponsor|suggest|bought|together"
    r"|complement|alternativ|you-?may|cross|trending|bestsell|best-?sell|popular",
    "slider": r"carousel|slider|swiper|slick|owl|flickity|splide|glide|rail|scroller",
    "tile": r"tile|card|grid|listing|result|product-?item|item-?product|product-?list|products|teaser|product-?box|thumb|product-?mini"
    r"|miniature|catalog|collection|category|plp|product-?small|loop",
    "chrome": r"header|footer|\bnav|menu|mini-?cart|minicart|sidebar|topbar|modal|popup|drawer|cookie|newsletter|wish|toolbar|cart-?(?:sum|tot|drop|prev|cont)"
    r"|basket|dropdown|flyout|overlay|dialog",
    "main": r"product-?(?:detail|info|main|essential|page|view|single|summary|content|buy|shop|data|primary|form|meta|top|header|right)|pdp|buy-?box"
    r"|summary|purchase|add-?to-?(?:cart|basket|bag)|detail|main|entry|single|buy",
    "review": r"review|comment|rating|question|faq|blog|article|post\b|description|desc\b|tab-?content|accordion",
    "hidden": r"hidden|d-none|\bhide|invisible|sr-only|visually|offscreen|collapse|template",
    "option": r"variant|variat|option|swatch|radio|addon|extra|warranty|insurance|protection|service|gift|configur|attribute|upgrade",
    "total": r"total|subtotal|\bsum\b|in-?cart",
    "sticky": r"sticky|fixed|mobile|floating",
    "cart": r"add-?to-?(?:cart|basket|bag|trolley)|addto(?:cart|basket|bag)|btn-?cart|cart-?b(?:tn|utton)|buy-?(?:now|button|btn)|buybutton|addcart|add-?cart|btn-?buy|cart-?add|tocart",
    "name": r"product-?(?:name|title)|title|item-?name|prod-?name|productname",
    "sku": r"sku|article-?n|artikel|mpn|item-?(?:no|num|code|id)|product-?(?:code|id|num)|model|reference|\bref\b|style-?(?:no|num|code)",
    "stock": r"stock|avail|lager|inventory|disponib|dostupn|verfügbar|skladem|sold-?out|soldout|out-?of|varasto|saadavus",
}  # fmt: skip
BITS: dict[str, int] = {name: 1 << place for place, name in enumerate(MEANINGS)}
LINK, LIST, TABLE, STRUCK, BOLD, SMALL, OPTION_TAG, ASIDE = (
    1 << (len(MEANINGS) + place) for place in range(8)
)
TAG_BITS: dict[str, int] = {
    "a": LINK,
    "li": LIST,
    "article": LIST,
    "td": TABLE,
    "th": TABLE,
    "del": STRUCK,
    "s": STRUCK,
    "strike": STRUCK,
    "b": BOLD,
    "strong": BOLD,
    "small": SMALL,
    "option": OPTION_TAG,
    "select": OPTION_TAG,
    "nav": ASIDE,
    "footer": ASIDE,
    "header": ASIDE,
    "aside": ASIDE,
}
# Bits by their names, for the features and the debugger.
ALL_BITS: dict[str, int] = {
    **BITS,
    "in_link": LINK,
    "in_list": LIST,
    "in_table": TABLE,
    "struck": STRUCK,
    "bold": BOLD,
    "small": SMALL,
    "in_option": OPTION_TAG,
    "aside": ASIDE,
}
_SEARCHES = [(bit, re.compile(MEANINGS[name]).search) for name, bit in BITS.items()]
_STRUCK_STYLE = re.compile(r"line-through")
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=20_000)
def meaning(words: str) -> int:
    """The bits of an element's names; the same names come back often."""
    text = _CAMEL.sub("-", words[:300]).lower().replace("_", "-")
    bits = 0
    for bit, search in _SEARCHES:
        if search(text):
            bits |= bit
    return bits


@lru_cache(maxsize=4_000)
def style_bits(style: str) -> int:
    bits = STRUCK if _STRUCK_STYLE.search(style) else 0
    return bits | BITS["hidden"] if _HIDDEN_STYLE.search(style) else bits


def names_of(bits: int) -> tuple[str, ...]:
    return tuple(name for name, bit in ALL_BITS.items() if bits & bit)
