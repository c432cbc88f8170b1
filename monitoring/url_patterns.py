"""Patterns over a shop's URLs: ``/outlet/*`` means every page below that folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

from common.errors import Invalid

MAX_PATTERNS = 50
MAX_CHARS = 255
# Each may try every place of the URL: a few are enough for anybody.
MAX_STARS = 5


def check_patterns(patterns: Sequence[str], *, attr: str) -> list[str]:
    """Each once, in their order; raises ``Invalid`` naming the first bad one."""
    if len(patterns) > MAX_PATTERNS:
        raise Invalid(f"At most {MAX_PATTERNS} patterns.", attr=attr)
    for index, pattern in enumerate(patterns):
        if problem := _problem(pattern):
            raise Invalid(problem, attr=f"{attr}.{index}")
    return list(dict.fromkeys(patterns))


def _problem(pattern: str) -> str:
    if not pattern.startswith(("/", "*")) or len(pattern) > MAX_CHARS:
        return f"Must start with / or *, and have at most {MAX_CHARS} characters: /outlet/*"
    if pattern.strip("/*") == "":
        return "This means every page; name a part of the path: /outlet/*"
    if pattern.count("*") > MAX_STARS:
        return f"At most {MAX_STARS} stars."
    return ""


def first_match(patterns: Iterable[str], url: str) -> str | None:
    """The first of the patterns that means this URL."""
    path = path_of(url)
    return next((one for one in patterns if _compiled(one).fullmatch(path)), None)


def path_of(url: str) -> str:
    """Path and query, what patterns are held against."""
    return "/" + url.partition("://")[2].partition("/")[2]


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Lazy and possessive enough: between stars stands plain text only.
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return re.compile(".*?".join(parts), re.IGNORECASE | re.DOTALL)


def folder_pattern(url: str) -> str:
    """Everything beside and below a page; empty for pages at the top."""
    folder = path_of(url).partition("?")[0].rpartition("/")[0]
    return f"{folder}/*" if folder.strip("/") else ""


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """Which candidates are watched without anybody's approval."""

    min_score: float
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self | None:
        if not stored:
            return None
        return cls(
            float(stored["min_score"]),
            tuple(stored.get("include", ())),
            tuple(stored.get("exclude", ())),
        )

    def takes(self, score: float, url: str) -> bool:
        if score < self.min_score or first_match(self.exclude, url):
            return False
        return not self.include or first_match(self.include, url) is not None


def checked_rule(rule: dict[str, Any] | None) -> dict[str, Any] | None:
    """The rule as it is kept; raises ``Invalid``."""
    if rule is None:
        return None
    score = rule.get("min_score", 0.9)
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise Invalid("Must be a number from 0 to 1.", attr="auto_approve.min_score")
    return {
        "min_score": float(score),
        "include": check_patterns(rule.get("include", []), attr="auto_approve.include"),
        "exclude": check_patterns(rule.get("exclude", []), attr="auto_approve.exclude"),
    }
