"""Currencies as shops write them, to ISO 4217: the tables are data, the code is two look-ups."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CODES = _words(
    """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF
IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SLE SOS SRD SSP SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF
XCD XOF XPF YER ZAR ZMW
"""
)
# Old or loose names of a code.
ALIASES = {"RMB": "CNY", "NIS": "ILS", "NTD": "TWD", "RUR": "RUB", "GBX": "GBP", "BYR": "BYN"}
SYMBOLS = {
    "€": "EUR", "£": "GBP", "￡": "GBP", "₹": "INR", "₽": "RUB", "₴": "UAH", "₪": "ILS", "₩": "KRW", "₫": "VND",
    "₱": "PHP", "₺": "TRY", "₸": "KZT", "₦": "NGN", "₲": "PYG", "₡": "CRC", "₵": "GHS", "₼": "AZN", "₾": "GEL",
    "֏": "AMD", "฿": "THB", "₭": "LAK", "៛": "KHR", "₮": "MNT", "৳": "BDT", "؋": "AFN", "原": "CNY", "円": "JPY",
    "元": "CNY", "원": "KRW", "圓": "TWD", "đ": "VND", "Đ": "VND", "zł": "PLN", "Kč": "CZK", "Kčs": "CZK", "Ft": "HUF",
    "лв": "BGN", "руб": "RUB", "р": "RUB", "Р": "RUB", "грн": "UAH", "сум": "UZS", "тг": "KZT", "сом": "KGS",
    "ден": "MKD", "дин": "RSD", "din": "RSD", "Дин": "RSD", "лей": "MDL", "lei": "RON", "Lei": "RON", "LEI": "RON",
    "KM": "BAM", "kn": "HRK", "TL": "TRY", "R$": "BRL", "A$": "AUD", "AU$": "AUD", "AU $": "AUD", "C$": "CAD",
    "CA$": "CAD", "CAD$": "CAD", "CDN$": "CAD", "US$": "USD", "US $": "USD", "U$S": "USD", "NZ$": "NZD", "HK$": "HKD",
    "S$": "SGD", "SG$": "SGD", "NT$": "TWD", "NT": "TWD", "MX$": "MXN", "Mex$": "MXN", "RD$": "DOP", "J$": "JMD",
    "TT$": "TTD", "MOP$": "MOP", "$U": "UYU", "N$": "NAD", "Z$": "ZWL", "T$": "TOP", "GY$": "GYD", "BZ$": "BZD",
    "CUC$": "CUC", "B/.": "PAB", "S/.": "PEN", "S/": "PEN", "Bs": "BOB", "Bs.": "BOB", "Gs.": "PYG", "Q": "GTQ",
    "RM": "MYR", "Rp": "IDR", "Rp.": "IDR", "KD": "KWD", "BD": "BHD", "QR": "QAR", "SR": "SAR", "Dhs": "AED",
    "Dh": "AED", "DHS": "AED", "د.إ": "AED", "درهم": "AED", "ر.س": "SAR", "ريال": "SAR", "SAR": "SAR", "د.ك": "KWD",
    "ر.ع": "OMR", "ر.ق": "QAR", "د.ب": "BHD", "د.أ": "JOD", "د.م": "MAD", "د.ج": "DZD", "دج": "DZD", "ج.م": "EGP",
    "جنيه": "EGP", "LE": "EGP", "E£": "EGP", "ع.د": "IQD", "تومان": "IRT", "ریال": "IRR", "﷼": "IRR", "₨": "INR",
    "Rs.": "", "Rs": "", "KSh": "KES", "Ksh": "KES", "KSH": "KES", "TSh": "TZS", "TSH": "TZS", "USh": "UGX",
    "GH₵": "GHS", "GH¢": "GHS", "Fr.": "CHF", "SFr": "CHF", "SFr.": "CHF", "sFr.": "CHF", "Fr": "CHF", "CHf": "CHF",
    "ש״ח": "ILS", 'ש"ח': "ILS", "บาท": "THB", "stg": "GBP", "MK": "MWK", "MT": "MZN", "Rf": "MVR", "Nu.": "BTN",
    "Db": "STN", "VT": "VUV", "FRw": "RWF", "Ar": "MGA", "so'm": "UZS", "som": "UZS", "hrn": "UAH", "yuan": "CNY",
    "euro": "EUR", "euros": "EUR", "Euro": "EUR", "Euros": "EUR", "eur": "EUR", "Eur": "EUR", "usd": "USD",
    "gbp": "GBP", "dollars": "", "kr": "", "Kr": "", "KR": "", "kr.": "", "Kr.": "", "$": "", "¥": "", "￥": "",
    "＄": "", "R": "ZAR", "L": "", "P": "", "K": "", "p.": "RUB", "p": "", "₤": "", "¢": "", "ரூ": "LKR", "රු": "LKR",
}  # fmt: skip
# A symbol of several currencies: the one of the page's country if it is among them, else the first ("" = unsure).
SHARED = {
    "$": "USD CAD AUD NZD MXN SGD HKD TWD CLP COP ARS UYU BRL DOP JMD TTD BBD BSD FJD NAD XCD",
    "＄": "USD CAD AUD NZD MXN SGD HKD TWD",
    "dollars": "USD CAD AUD NZD",
    "kr": "SEK NOK DKK ISK",
    "¥": "JPY CNY",
    "￥": "JPY CNY",
    "Rs": "INR PKR LKR NPR MUR SCR",
    "Rs.": "INR PKR LKR NPR MUR SCR",
    "₨": "PKR INR LKR NPR MUR",
    "£": "GBP EGP GIP FKP",
    "₤": "GBP TRY",
    "R": "ZAR",
    "L": "HNL RON MDL",
    "P": "PHP BWP",
    "K": "ZMW PGK",
    "p": "RUB",
    "元": "CNY TWD",
    "р": "RUB BYN",
    "Bs": "BOB VES",
    "Fr.": "CHF XAF XOF",
    "Fr": "CHF XAF XOF",
    "lei": "RON MDL",
    "ريال": "SAR QAR OMR YER",
    "﷼": "IRR SAR QAR OMR YER",
    "درهم": "AED MAD",
    "Dh": "AED MAD",
}
# Letters that mean something else too often to make a price of a number alone.
WEAK = _words("L P K p Q R MT MK Ar BD KM VT NT Db Rf som din Fr LE SR QR Bs")
COUNTRIES = {
    country: code
    for code, countries in {
        "EUR": "at be cy de ee es fi fr gr ie it lt lu lv mt nl pt si sk hr bg eu me xk ad mc sm va",
        "USD": "us ec sv pr", "GBP": "uk gb", "CAD": "ca", "AUD": "au", "NZD": "nz", "MXN": "mx", "SGD": "sg",
        "HKD": "hk", "TWD": "tw", "CLP": "cl", "COP": "co", "ARS": "ar", "UYU": "uy", "BRL": "br", "DOP": "do",
        "SEK": "se", "NOK": "no", "DKK": "dk", "ISK": "is", "JPY": "jp", "CNY": "cn", "INR": "in", "PKR": "pk",
        "LKR": "lk", "NPR": "np", "MUR": "mu", "EGP": "eg", "TRY": "tr", "RON": "ro", "MDL": "md", "PLN": "pl",
        "CZK": "cz", "HUF": "hu", "CHF": "ch li", "RUB": "ru", "UAH": "ua", "BYN": "by", "KZT": "kz", "ILS": "il",
        "AED": "ae", "SAR": "sa", "KWD": "kw", "QAR": "qa", "OMR": "om", "BHD": "bh", "JOD": "jo", "MAD": "ma",
        "DZD": "dz", "TND": "tn", "IRR": "ir", "IQD": "iq", "ZAR": "za", "NGN": "ng", "KES": "ke", "GHS": "gh",
        "KRW": "kr", "VND": "vn", "THB": "th", "IDR": "id", "MYR": "my", "PHP": "ph", "BDT": "bd", "RSD": "rs",
        "BAM": "ba", "MKD": "mk", "ALL": "al", "GEL": "ge", "AMD": "am", "AZN": "az", "PEN": "pe", "BOB": "bo",
        "PYG": "py", "CRC": "cr", "GTQ": "gt", "HNL": "hn", "PAB": "pa", "VES": "ve", "JMD": "jm", "TTD": "tt",
    }.items()
    for country in countries.split()
}  # fmt: skip
LANGUAGES = {
    "de": "EUR", "fr": "EUR", "it": "EUR", "nl": "EUR", "fi": "EUR", "el": "EUR", "sk": "EUR", "sl": "EUR",
    "et": "EUR", "lv": "EUR", "lt": "EUR", "sv": "SEK", "nb": "NOK", "no": "NOK", "nn": "NOK", "da": "DKK",
    "is": "ISK", "ja": "JPY", "ko": "KRW", "pl": "PLN", "cs": "CZK", "hu": "HUF", "ro": "RON", "uk": "UAH",
    "tr": "TRY", "he": "ILS", "vi": "VND", "th": "THB", "id": "IDR", "ru": "RUB", "zh": "CNY", "fa": "IRR",
}  # fmt: skip
# Currencies with thousandths, and those whose prices have no decimals.
THOUSANDTHS = _words("BHD IQD JOD KWD LYD OMR TND")
WHOLE = _words("JPY KRW VND IDR CLP PYG HUF ISK COP UGX XAF XOF IRR IRT TZS")
# Two-letter domain endings that are sold to anybody.
LOOSE_ENDINGS = _words("co io me tv cc ai eu to ly ws fm gg sh is ad am la")
LOCALE = re.compile(r"([a-z]{2,3})(?:[-_](?:[A-Za-z]{4}[-_])?([A-Za-z]{2}))?\Z")


def _alternatives() -> str:
    names = sorted({*SYMBOLS, *CODES, *ALIASES}, key=len, reverse=True)
    words = (re.escape(name) for name in names if name[0].isalpha())
    signs = (re.escape(name) for name in names if not name[0].isalpha())
    return rf"(?<![^\W\d_])(?:{'|'.join(words)})(?![^\W\d_])|{'|'.join(signs)}"


# Currency names, the longest first; a word must stand alone.
PATTERN = _alternatives()
NAME = re.compile(PATTERN)


def iso_code(name: str, home: str = "") -> str:
    """The ISO code a symbol or code stands for, on a page whose own currency is `home`; "" when unsure."""
    if name in CODES:
        return name
    if name in SHARED:
        shared = SHARED[name].split()
        return home if home in shared else SYMBOLS.get(name, "")
    plain = name.rstrip(".")
    if plain.lower() == "kr":
        return home if home in SHARED["kr"].split() else ""
    return SYMBOLS.get(name) or SYMBOLS.get(plain) or ALIASES.get(name, "")


# What a symbol of several currencies means where nothing else is known.
USUAL = {"$": "USD", "＄": "USD", "¥": "JPY", "￥": "JPY", "Rs": "INR", "Rs.": "INR", "kr": "SEK"}


def locale_currency(locale: str) -> str:
    """The currency of a language tag (`sv`, `de-CH`) or of a country's domain ending."""
    found = LOCALE.match(locale.strip())
    if found is None:
        return ""
    language, country = found.groups()
    return COUNTRIES.get(country.lower(), "") if country else LANGUAGES.get(language, "")


def host_currency(host: str) -> str:
    ending = host.rstrip(".").rsplit(".", 1)[-1].lower()
    if ending == "co":
        return ""
    return (
        ""
        if ending in LOOSE_ENDINGS and ending not in ("my", "in", "be")
        else COUNTRIES.get(ending, "")
    )


def to_iso(text: str, home: str = "") -> str:
    """The ISO code of what a shop wrote as its currency (`eur`, `US$`, `руб.`); "" when unsure."""
    text = text.strip()
    if text.upper() in CODES:
        return text.upper()
    named = NAME.search(text[:60])
    return iso_code(named.group(), home) if named is not None else ""
