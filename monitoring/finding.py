"""Products by words and by shop."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q

from common.errors import Refused
from common.urls import normalize_url, parse_url, url_hash
from monitoring.models import TEXT_FIELDS, Website

MAX_WORDS = 10


def by_text(rows: Any, text: str) -> Any:
    """All words, each of which may be the beginning of one."""
    words = re.findall(r"\w+", text)[:MAX_WORDS]
    if not words:
        return rows.none()
    beginnings = " & ".join(f"{word}:*" for word in words)
    query = SearchQuery(beginnings, config="simple", search_type="raw")
    # As the index has it, word for word.
    return rows.alias(words=SearchVector(*TEXT_FIELDS, config="simple")).filter(words=query)


def by_anything(rows: Any, text: str) -> Any:
    """What a person types: an address, a number of the shop, or words; by the index of each."""
    text = text.strip()
    if text.lower().startswith(("http://", "https://")):
        return rows.filter(url_hash=_hash(text))
    numbered = rows.filter(Q(gtin=text) | Q(sku=text, website__in=Website.objects.values("pk")))
    return numbered if numbered.exists() else by_text(rows, text)


def _hash(url: str) -> str:
    try:
        return url_hash(normalize_url(parse_url(url, allow_local=True)))
    except Refused:
        return ""


def of_domain(rows: Any, host: str) -> Any:
    """With or without its port and ``www.``; not a host that only begins like it."""
    name = host.strip().lower().rstrip("/").removeprefix("www.")
    at = Q()
    for scheme, www, end in product(("https", "http"), ("", "www."), "/:"):
        at |= Q(website__base_url__startswith=f"{scheme}://{www}{name}{end}")
    return rows.filter(at)
