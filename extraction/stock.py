"""Availability as data says it, in every spelling."""

from __future__ import annotations

import re
from typing import Any

from extraction.items import Stock
from extraction.texts import text_of

AVAILABILITY = {
    "instock": Stock.IN_STOCK,
    "onlineonly": Stock.IN_STOCK,
    "instoreonly": Stock.IN_STOCK,
    "available": Stock.IN_STOCK,
    "availablenow": Stock.IN_STOCK,
    "yes": Stock.IN_STOCK,
    "true": Stock.IN_STOCK,
    "outofstock": Stock.OUT_OF_STOCK,
    "outstock": Stock.OUT_OF_STOCK,
    "notinstock": Stock.OUT_OF_STOCK,
    "soldout": Stock.OUT_OF_STOCK,
    "unavailable": Stock.OUT_OF_STOCK,
    "notavailable": Stock.OUT_OF_STOCK,
    "reserved": Stock.OUT_OF_STOCK,
    "oos": Stock.OUT_OF_STOCK,
    "false": Stock.OUT_OF_STOCK,
    "limitedavailability": Stock.LIMITED_AVAILABILITY,
    "limited": Stock.LIMITED_AVAILABILITY,
    "lowstock": Stock.LIMITED_AVAILABILITY,
    "preorder": Stock.PREORDER,
    "presale": Stock.PREORDER,
    "comingsoon": Stock.PREORDER,
    "backorder": Stock.BACKORDER,
    "backordered": Stock.BACKORDER,
    "availablefororder": Stock.BACKORDER,
    "madetoorder": Stock.BACKORDER,
    "discontinued": Stock.DISCONTINUED,
}
LETTERS = re.compile(r"[^a-z]")
LARGEST_QUANTITY = 1_000_000


def read_stock(value: Any) -> tuple[Stock, str]:
    """The state and the text it was read from."""
    if isinstance(value, bool):
        return (Stock.IN_STOCK if value else Stock.OUT_OF_STOCK), str(value)
    raw = text_of(value)
    if not raw:
        return Stock.UNKNOWN, ""
    word = LETTERS.sub("", raw.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1].lower())
    return AVAILABILITY.get(word, Stock.UNKNOWN), raw


def read_quantity(value: Any) -> int | None:
    """How many are left, where a whole number says so."""
    if isinstance(value, dict):
        value = value.get("value") or value.get("minValue")
    text = text_of(value)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return int(text) if int(text) <= LARGEST_QUANTITY else None
