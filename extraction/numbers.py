"""Amounts as shops write them, to exact decimals."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

# Twelve digits before the point are more than any price; beyond is dirt.
LARGEST = Decimal("9999999999.9999")
NUMBER = re.compile(r"\d[\d.,'’  ]*|[.,]\d+")
EXPONENT = re.compile(r"\d[eE][+-]?\d")
PLAIN = re.compile(r"\d+(?:\.\d+)?\Z", re.ASCII)


def parse_amount(value: object) -> Decimal | None:
    """The amount a structured value stands for; None when there is none to trust."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    text = str(value).strip()
    if not PLAIN.match(text):
        found = NUMBER.search(text) if len(text) <= 64 else None
        if found is None or text.startswith("-") or EXPONENT.search(text):
            return None
        text = _unify(found.group())
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return amount.quantize(Decimal("0.0001")).normalize() + 0 if amount <= LARGEST else None


def _unify(text: str) -> str:
    """Thousands separators out, one decimal point left."""
    text = re.sub(r"['’  ]", "", text).rstrip(".,")
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = "," if comma > point else "."
        return text.replace("." if decimal == "," else ",", "").replace(decimal, ".")
    separator = "," if comma >= 0 else "."
    head, _, tail = text.rpartition(separator)
    if separator in head or (len(tail) == 3 and head not in ("", "0")):
        return text.replace(separator, "")
    return f"{head or '0'}.{tail}" if separator in text else text
