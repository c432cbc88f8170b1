"""Whether two texts name the same product."""

from __future__ import annotations

import re
import unicodedata

WORDS = re.compile(r"\w+")


def words_of(text: str) -> frozenset[str]:
    return frozenset(WORDS.findall(unicodedata.normalize("NFKC", text).casefold()))


def covered(name: str, text: str) -> float:
    """The share of a name's words that stand in a text."""
    words = words_of(name)
    return len(words & words_of(text)) / len(words) if words else 0.0


def alike(one: str, other: str) -> bool:
    """Half of the words of the shorter name, at least, stand in the longer."""
    return max(covered(one, other), covered(other, one)) >= 0.5
