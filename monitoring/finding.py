"""Products by words and by shop."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q

from monitoring.models import TEXT_FIELDS

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


def of_domain(rows: Any, host: str) -> Any:
    prefix = f"://{host.strip().lower().removeprefix('www.')}"
    at = Q(website__base_url__startswith=f"https{prefix}")
    at |= Q(website__base_url__startswith=f"http{prefix}")
    at |= Q(website__base_url__startswith=f"https://www.{prefix[3:]}")
    return rows.filter(at)
