"""What a page would be read as, with all reasons; nothing of it is kept.

The same fetch and the same reader as in a real run. API, command and console show this.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from common.urls import host_of, parse_url
from crawling import looking, pages
from crawling.fetching import Page
from crawling.models import Domain, StoredPage
from crawling.parsing import content_type_of
from extraction.items import Hints, Lost, NoProduct, PageKind, ProductItem
from extraction.product import extract_product
from extraction.sites import PARSERS, parser_for
from monitoring import changes
from monitoring.models import Website
from monitoring.reading import hints_for

# Of the item, what is no value of the page itself.
ABOUT = ("method", "confidence", "reason", "parser", "raw", "fields", "lost", "variants")
SHOWN = tuple(f.name for f in dataclasses.fields(ProductItem) if f.name not in ABOUT)
LONGEST_RAW = 500


@dataclass(frozen=True, slots=True)
class Fetched:
    """How the page came."""

    robots: str
    status: int | None = None
    elapsed_ms: int | None = None
    bytes: int = 0
    content_type: str = ""
    error_category: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value and how it came about."""

    name: str
    value: Any
    # Empty, and no confidence, where it follows from other values.
    source: str
    raw: str
    confidence: float | None
    place: str


@dataclass(frozen=True, slots=True)
class Preview:
    url: str
    # product, no_product or not_fetched.
    outcome: str
    why: str
    fetched: Fetched | None = None
    method: str = ""
    confidence: float | None = None
    page_kind: str = ""
    # Does the page need a browser: yes, no, or unknown.
    js_needed: str = "unknown"
    parser: str = ""
    parser_version: str = ""
    fields: tuple[Shown, ...] = ()
    lost: tuple[Lost, ...] = ()
    variants: tuple[dict[str, Any], ...] = ()


def preview_url(url: str, **hints: str) -> Preview:
    """Fetch a page and read it; raises ``Refused`` where nobody may ask."""
    page = looking.look_at(url)
    domain = Domain.objects.filter(pk=page.claim.domain_id).first()
    target = page.url or page.claim.url
    fetched = _fetched(page, looking.robots_verdict(domain, page.claim.url))
    if page.failure is not None:
        return Preview(target, "not_fetched", page.failure.message, fetched)
    told = hints_for(domain, None, **hints)
    return _read(page.body, target, fetched.content_type, told, fetched)


def preview_html(body: bytes, url: str, *, content_type: str = "", **hints: str) -> Preview:
    """Read a page that somebody has already."""
    target = parse_url(url, allow_local=True)
    domain = Domain.objects.filter(host=host_of(target)).first()
    return _read(body, target, content_type, hints_for(domain, None, **hints), None)


def preview_stored(
    stored: StoredPage, url: str, website: Website | None = None, **hints: str
) -> Preview:
    """Read a page that is kept; raises ``PageLost``."""
    domain = Domain.objects.filter(host=host_of(url)).first()
    kind = content_type_of(stored.content_type, stored.charset)
    told = hints_for(domain, website, **hints)
    return _read(pages.read_page(stored), url, kind, told, None)


def _fetched(page: Page, robots: str) -> Fetched:
    failure = page.failure
    return Fetched(
        robots=robots,
        status=page.status,
        elapsed_ms=page.elapsed_ms,
        bytes=len(page.body),
        content_type=page.headers.get("Content-Type", ""),
        error_category=failure.category if failure else "",
        error=failure.message if failure else "",
    )


def _read(
    body: bytes, url: str, content_type: str, hints: Hints, fetched: Fetched | None
) -> Preview:
    item = extract_product(body, url, content_type=content_type, hints=hints)
    return explain(item, url, body, hints, fetched)


def explain(
    item: ProductItem | NoProduct,
    url: str,
    body: bytes,
    hints: Hints,
    fetched: Fetched | None = None,
) -> Preview:
    parser = parser_for(hints.parser_name, host_of(url), body)
    if isinstance(item, NoProduct):
        return Preview(
            url,
            "no_product",
            item.reason,
            fetched,
            page_kind=item.kind,
            js_needed="yes" if item.kind == PageKind.SCRIPT_ONLY else "no",
            parser=parser.name,
            parser_version=parser.version,
            lost=item.lost,
        )
    used = PARSERS.get(item.parser, parser)
    return Preview(
        url,
        "product",
        item.reason,
        fetched,
        method=item.method,
        confidence=item.confidence,
        page_kind="product",
        js_needed="no",
        parser=used.name,
        parser_version=used.version,
        fields=tuple(_fields(item)),
        lost=item.lost,
        variants=tuple(plain(dataclasses.asdict(variant)) for variant in item.variants),
    )


def _fields(item: ProductItem) -> list[Shown]:
    """Every value the item has, also those that were derived from others."""
    found = []
    for name in SHOWN:
        value = getattr(item, name)
        origin = item.fields.get(name)
        if value in (None, "", (), False) and origin is None:
            continue
        raw = (origin.raw if origin else "") or item.raw.get(name, "")
        found.append(
            Shown(
                name,
                plain(value),
                origin.source if origin else "",
                str(raw)[:LONGEST_RAW],
                round(origin.confidence, 3) if origin else None,
                origin.place if origin else "",
            )
        )
    return found


def plain(value: Any) -> Any:
    """As JSON holds it: decimals as text, tuples as lists."""
    if isinstance(value, Decimal):
        # What no column would hold is shown as it was read.
        return changes.plain(value) if value.adjusted() < 12 else str(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def as_json(preview: Preview) -> dict[str, Any]:
    """One object, the same wherever it is shown."""
    document: dict[str, Any] = plain(dataclasses.asdict(preview))
    document["fields"] = {one.pop("name"): one for one in document["fields"]}
    document["fetch"] = document.pop("fetched")
    return document
