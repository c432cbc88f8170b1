"""Amounts as shops write them, to exact decimals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import IntEnum

from extraction.currencies import NAME, PATTERN, THOUSANDTHS, WEAK, iso_code, locale_currency

# Ten digits before the point are more than any price; beyond is dirt.
LARGEST = Decimal("9999999999.9999")
# A price stands in a short text; the rest of a long one is prose.
LONGEST = 400
PLAIN = re.compile(r"\d{1,10}(?:\.\d{1,12})?\Z", re.ASCII)
EXPONENT = re.compile(r"\d[eE][+-]?\d")
FOREIGN_DIGITS = {
    zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966, 0xFF10, 0x9E6) for digit in range(10)
} | {0x66B: ".", 0x66C: ",", 0xFF0E: ".", 0xFF0C: ",", 0x2212: "-", 0x200E: None, 0x200F: None}
SPACES = "[ \u00a0\u2009\u202f]"
NUMBER = re.compile(
    rf"(?<![\d.,])\d{{1,3}}(?:{SPACES}\d{{3}})+(?!\d)(?:[.,]\s?\d{{1,2}}(?!\d))?"
    r"|\d+(?:[.,'’´`]\d+)*(?:[.,]\s\d\d(?!\d))?"
    r"|[.,]+\d+(?:[.,]\d+)*",
    re.ASCII,
)
DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-](?:\d{4}|\d{2})\Z", re.ASCII)
BEFORE = re.compile(rf"({PATTERN})[\s:]*\Z")
AFTER = re.compile(rf"\s*(?:[.,]\s?[-–—]+|/-)?\s*({PATTERN})")
# Letters or a dash just before a number make it part of a code: `P4-3992`.
CODE = re.compile(r"(?:[A-Za-z]|\w[-/])\Z", re.ASCII)
# `35€ 99`: the sign stands where the decimal point would.
SIGN_AS_POINT = re.compile(r"(\d)\s?([€$£])\s?(\d\d)(?=\s*(?:\Z|[^\w\s%€$£.,]))")
MINUS = re.compile(r"(?:^|[\s(:])[-–—]\S{0,4}\Z")
RANGE = re.compile(r"\s*(?:[-–—~]|to|bis|à|až|до)\s*\Z")

WAS = re.compile(
    r"(?:\bwas|\bstatt|\buvp|\bmsrp|\brrp|\bold price|list price|before|retail|regular|original|reg\.|listed|\bavant|"
    r"au lieu de|\bantes|\bprima|\binvece di|dříve|před slevou|\bvorher|tidigare|\bvoor|\bvan|původní)(?:\s+(?:price|preis|prix|cena))?\W*\Z",
    re.IGNORECASE,
)
NOW = re.compile(
    r"(?:\bnow|\bjetzt|\bnur|\bsale|maintenant|\bahora|\badesso|\bora|\bnu|\bteraz|nyní|сейчас|special price"
    r"|our price|your price|promo)\W*(?:only|from)?\W*\Z",
    re.IGNORECASE,
)
SAVING = re.compile(
    r"(?:\bsav(?:e|ings?|ed)|sparen|\bspare|gespart|ersparnis|rabatt|économi\w+|ahorr\w+|risparmi\w*|ušetř\w+"
    r"|discount|remise|descuento|sconto|bespaar|oszczęd\w+|скидка|экономия|cashback|coupon|voucher)"
    r"(?:\s+(?:up to|an|extra|another|of|bis zu|jusqu'à|de|you|over)){0,3}\W*\Z",
    re.IGNORECASE,
)
SAVED = re.compile(
    r"\s*(?:off\b|discount|rabatt|sparen|cash ?back|de descuento|di sconto)", re.IGNORECASE
)
SHIPPING = re.compile(
    r"(?:shipping|delivery|versand\w*|livraison|envío|spedizione|dostaw\w+|orders?|over|above|ab einem \w+ von"
    r"|frais de port|deposit|porto|frakt)\s*(?:on|for|from|over|above|ab|:|of|dès|cost)?\W*\Z",
    re.IGNORECASE,
)
INSTALMENT = re.compile(
    r"\s*(?:/|per\b|a\b|pro\b|par\b|al\b|im\b|p\.|por\b|na\b|each)?\s*"
    r"(?:mo\b|month|mth\b|mois|monat|mtl|mes\b|mese|mês|mies|měs|måned|månad|maand|week|wk\b|ay\b|мес|月|yr\b|year\b|день)",
    re.IGNORECASE,
)
TIMES = re.compile(
    r"\d\s*(?:x|×|х|\*|rates? de|fois)\s*(?:de\s*)?\W{0,4}\Z"
    r"|\d\s+(?:[a-z-]+,?\s+){0,3}(?:payments?|instal?lments?)\s*(?:of|at|from)?\W{0,4}\Z"
    r"|\d\s*(?:\w+\s+)?(?:raten|rat|splátek|cuotas|parcelas|rate)\s+(?:zu|à|von|po|de|da|a)?(?:\s*\bje)?\W{0,4}\Z"
    r"|\b(?:monthly|per month|a month|monatlich(?:e rate)?|mtl\.|mensuel\w*|mensual\w*|mensil\w*|miesięcznie|měsíčně|maandelijks)"
    r"\s*(?:from|payments?(?: of)?|only|just|ab|nur|von|von nur)?\W{0,4}\Z"
    r"|\bsem juros de\s*\W{0,4}\Z",
    re.IGNORECASE,
)
# `4 x R$ 10 sem juros`, `$12.50 in 4 payments`.
INSTALMENTS_AFTER = re.compile(
    r"\s*(?:sem juros|sin intereses|interest[- ]free|(?:x|in|for|over)\s*\d+\s+(?:payments|instal?lments|months))\b",
    re.IGNORECASE,
)
SPEND = re.compile(
    r"\b(?:spend|only|just|add|noch)\s*(?:another|an extra|nur)?\W{0,4}\Z", re.IGNORECASE
)
MORE = re.compile(r"\s*(?:more|away)\b", re.IGNORECASE)
UNIT = re.compile(
    r"\s*(?:/|per\b|pro\b|je\b|al\b|le\b|par\b|na\b|за\b)\s*"
    r"(?:\d+\s*)?(?:kg|g|gr|mg|l|lt|ml|cl|dl|m|m2|m²|sq|lb|oz|fl|st|stk|stück|ea|each|unit|pc|piece|szt|шт|100)\b",
    re.IGNORECASE,
)
PERCENT = re.compile(r"\s?%")
MEASURE = re.compile(
    r"\s?(?:[x×]\s?\d+|ft|cm|mm|m|kg|g|mg|ml|cl|l|lb|lbs|oz|inch|in|gb|mb|tb|mah|w|v|hz|\"|”|″|years?|days?|h)\b"
)


class Kind(IntEnum):
    """What an amount in a text is said to be; the lowest is taken for the price."""

    NOW = 0
    PLAIN = 1
    WAS = 2
    UNIT = 3
    INSTALMENT = 4
    SHIPPING = 5
    SAVING = 6


@dataclass(frozen=True, slots=True)
class Price:
    amount: Decimal | None
    # ISO 4217, or "" when nothing says which.
    currency: str = ""
    # The currency as it was written.
    symbol: str = ""
    kind: Kind = Kind.PLAIN


NOTHING = Price(None)


def parse_amount(value: object) -> Decimal | None:
    """The amount a structured value stands for; None when there is none to trust."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, int):
        return Decimal(value) if 0 <= value <= LARGEST else None
    text = str(value).strip()
    if PLAIN.match(text):
        return _rounded(Decimal(text))
    if len(text) > LONGEST or text.startswith("-") or EXPONENT.search(text):
        return None
    amount = parse_price(text).amount
    return None if amount is None else _rounded(amount)


def _rounded(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.0001")).normalize() + 0


def parse_price(
    text: str,
    *,
    currency_hint: str | None = None,
    decimal_hint: str | None = None,
    locale_hint: str | None = None,
) -> Price:
    """The price a text names, its currency in ISO 4217: the one to pay now, not a saving or an old one."""
    if PLAIN.match(text) and not (currency_hint or decimal_hint or "." in text):
        return Price(Decimal(text))
    home = locale_currency(locale_hint) if locale_hint else ""
    hint = _named_currency(currency_hint, home)
    found = amounts(text, hint=hint[0] or home, decimal_hint=decimal_hint)
    best = min(found, key=lambda price: price.kind, default=NOTHING)
    if best.kind >= Kind.SHIPPING:
        best = NOTHING
    if best.currency or (best.symbol and not hint[0]):
        return best
    return Price(best.amount, hint[0], hint[1] or best.symbol, best.kind)


def _named_currency(text: str | None, home: str) -> tuple[str, str]:
    if not text:
        return "", ""
    if len(text) == 3 and text.upper() != text and text.isalpha():
        text = text.upper()
    named = NAME.search(text[:LONGEST])
    if named is None or (named.group() in WEAK and len(text.strip()) > len(named.group())):
        return "", ""
    return iso_code(named.group(), home), named.group()


def amounts(text: str, *, hint: str = "", decimal_hint: str | None = None) -> list[Price]:
    """Every amount of a text with its currency and kind; those without a currency only if none has one."""
    text = text[:LONGEST]
    if not text.isascii():
        text = text.translate(FOREIGN_DIGITS)
    text = (
        SIGN_AS_POINT.sub(r"\1.\3 \2", text) if "€" in text or "$" in text or "£" in text else text
    )
    matches = list(NUMBER.finditer(text))
    found: list[Price] = []
    bare: list[Price] = []
    for index, match in enumerate(matches):
        symbol = _symbol(text, match)
        if not symbol and index + 1 < len(matches):
            symbol = _range_symbol(text, match, matches[index + 1])
        price = _read(text, match, symbol, hint, decimal_hint)
        if price is not None:
            (found if symbol else bare).append(price)
    return found or [price for price in bare if price.kind is not Kind.UNIT or len(bare) == 1]


def _symbol(text: str, match: re.Match[str]) -> str:
    """The currency that stands at a number; a code beside a sign says more than the sign."""
    start, end = match.span()
    before = BEFORE.search(text, max(0, start - 9), start) if start else None
    after = AFTER.match(text, end, min(len(text), end + 14)) if end < len(text) else None
    names = [found.group(1) for found in (before, after) if found is not None]
    if before is not None:
        further = BEFORE.search(text, max(0, before.start() - 6), before.start())
        names += [further.group(1)] if further is not None else []
    names.sort(key=lambda name: (not iso_code(name), name in WEAK))
    return names[0] if names else ""


def _range_symbol(text: str, match: re.Match[str], following: re.Match[str]) -> str:
    """`10 – 20 €`: the first amount has the currency of the second."""
    if RANGE.match(text[match.end() : following.start()]):
        return _symbol(text, following)
    return ""


def _read(
    text: str, match: re.Match[str], symbol: str, hint: str, decimal_hint: str | None
) -> Price | None:
    raw = match.group()
    if DATE.match(raw) or PERCENT.match(text, match.end()):
        return None
    if not symbol and (MEASURE.match(text, match.end()) or _glued(text, match)):
        return None
    if symbol and CODE.search(text, 0, match.start()) and not BEFORE.search(text, 0, match.start()):
        return None
    currency = iso_code(symbol, hint)
    amount = _decimal(raw, currency or hint, decimal_hint, named=bool(symbol))
    if amount is None:
        return None
    return Price(amount, currency, symbol, _kind(text, match, symbol))


def _glued(text: str, match: re.Match[str]) -> bool:
    """Part of a word or a code such as `A1` or `1e400`."""
    start, end = match.span()
    before = text[start - 1] if start else " "
    after = text[end : end + 2]
    return (before.isascii() and before.isalpha()) or (after[:1] in "eE" and after[1:].isdigit())


def _kind(text: str, match: re.Match[str], symbol: str) -> Kind:
    start, end = match.span()
    before, after = text[max(0, start - 40) : start], text[end : end + 24]
    if symbol:
        before = before.rstrip().removesuffix(symbol)
        after = after.lstrip().removeprefix(symbol)
    if not before.strip() and not after.strip():
        return Kind.PLAIN
    if MINUS.search(before) or SAVING.search(before) or SAVED.match(after):
        return Kind.SAVING
    if INSTALMENT.match(after) or INSTALMENTS_AFTER.match(after) or TIMES.search(before):
        return Kind.INSTALMENT
    if SHIPPING.search(before) or (MORE.match(after) and SPEND.search(before)):
        return Kind.SHIPPING
    if UNIT.match(after):
        return Kind.UNIT
    if WAS.search(before):
        return Kind.WAS
    return Kind.NOW if NOW.search(before) else Kind.PLAIN


def _decimal(raw: str, currency: str, decimal_hint: str | None, *, named: bool) -> Decimal | None:
    text = _unify(re.sub(r"[\s'’´`]", "", raw), currency, decimal_hint, named=named)
    if len(text) > 30:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return amount if amount <= LARGEST else None


def _unify(text: str, currency: str, decimal_hint: str | None, *, named: bool) -> str:
    """Thousands separators out, one decimal point left."""
    text = text.rstrip(".,")
    if decimal_hint in (".", ","):
        other = "," if decimal_hint == "." else "."
        return re.sub(r"\.+", ".", text.replace(other, "").replace(decimal_hint, "."))
    bare = text.lstrip(".,")
    if bare != text:
        text = bare if "." in bare or "," in bare else f"0.{bare}"
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = "," if comma > point else "."
        return text.replace("." if decimal == "," else ",", "").replace(decimal, ".")
    separator = "," if comma >= 0 else "."
    head, _, tail = text.rpartition(separator)
    if separator in head and len(tail) == 2 and head[-4:-3] == separator:
        return f"{head.replace(separator, '')}.{tail}"
    if separator in head or (
        len(tail) == 3 and _is_thousands(head, tail, separator, currency, named=named)
    ):
        return text.replace(separator, "")
    return text.replace(",", ".")


def _is_thousands(head: str, tail: str, separator: str, currency: str, *, named: bool) -> bool:
    """Whether three digits after the only separator are thousands."""
    if head in ("", "0") or len(head) > 3:
        return False
    if currency in THOUSANDTHS:
        return separator == "," and currency != "TND"
    # `3.350` with no currency at all is how programs write 3.35.
    return not (
        separator == "." and not named and not currency and len(head) == 1 and tail[-1] == "0"
    )
