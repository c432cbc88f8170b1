"""How the pages of a batch are read: with the parser and the learned places of their
domain, and what their website says of currency and language. Loaded once a batch, when the
first of its pages has to be read; what was learnt is written in the transaction of the batch,
one statement for all domains.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import orjson
from django.db import connection

from crawling.fetching import Page
from crawling.models import Domain
from extraction.charsets import to_utf8
from extraction.items import Hints, LearnedPlace, NoProduct, ProductItem
from extraction.learned import check_places, learn_places, merge_places
from extraction.product import extract_product
from extraction.trees import tree_of
from monitoring.models import Website

# A template shows itself on a few pages; building a tree for each would slow all of them.
LEARN_FROM = 2

KEEP = """
    UPDATE crawling_domain d SET learned = v.learned
    FROM unnest(%s::uuid[], %s::jsonb[]) AS v(id, learned) WHERE d.id = v.id
"""


@dataclass(frozen=True, slots=True)
class Speech:
    """What a website is known to speak and to charge in."""

    currency: str = ""
    locale: str = ""


class Reader:
    def __init__(self, domain_ids: set[uuid.UUID], website_ids: set[uuid.UUID]) -> None:
        self._ids = domain_ids, website_ids
        self.learnt: dict[uuid.UUID, tuple[LearnedPlace, ...]] = {}
        self.looked: Counter[uuid.UUID] = Counter()

    @cached_property
    def domains(self) -> Mapping[uuid.UUID, tuple[str, tuple[LearnedPlace, ...]]]:
        return _domains(self._ids[0])

    @cached_property
    def websites(self) -> Mapping[uuid.UUID, Speech]:
        return _websites(self._ids[1])

    def hints(self, page: Page) -> Hints:
        claim = page.claim
        parser_name, places = self.domains.get(claim.domain_id, ("generic", ()))
        speech = self.websites.get(claim.website_id or claim.domain_id, Speech())
        return Hints(speech.currency, speech.locale, parser_name, learned=places)

    def read(self, page: Page) -> ProductItem | NoProduct:
        body, kind = page.content(), page.headers.get("Content-Type", "")
        item = extract_product(body, page.url, content_type=kind, hints=self.hints(page))
        if isinstance(item, ProductItem) and self.looked[page.claim.domain_id] < LEARN_FROM:
            self._learn(page.claim.domain_id, body, kind, item)
        return item

    def _learn(self, domain_id: uuid.UUID, body: bytes, kind: str, item: ProductItem) -> None:
        self.looked[domain_id] += 1
        known = self.learnt.get(domain_id, self.domains.get(domain_id, ("", ()))[1])
        tree = tree_of(to_utf8(body, kind))
        checked = check_places(tree, known, item)
        seen = {(place.name, place.selector) for place in checked}
        fresh = (p for p in learn_places(tree, item) if (p.name, p.selector) not in seen)
        merged = merge_places(known, (*checked, *fresh))
        if merged != known:
            self.learnt[domain_id] = merged

    def keep_learned(self) -> None:
        """In the caller's transaction."""
        if not self.learnt:
            return
        ids = sorted(self.learnt)
        values = [orjson.dumps([asdict(p) for p in self.learnt[key]]).decode() for key in ids]
        with connection.cursor() as cursor:
            cursor.execute(KEEP, [ids, values])
        self.learnt.clear()


def reader_for(pages: Sequence[Page]) -> Reader:
    domains = {page.claim.domain_id for page in pages}
    websites = {page.claim.website_id for page in pages if page.claim.website_id}
    return Reader(domains, websites)


def hints_for(domain: Domain | None, website: Website | None, **given: str) -> Hints:
    """For one page; what the caller names counts before what is known of the site."""
    known: dict[str, Any] = {}
    if website is not None:
        known = {"currency": website.currency, "locale": website.locale}
    if domain is not None:
        known["parser_name"] = domain.parser_name
    named = {name: value for name, value in given.items() if value}
    return Hints(**(known | named), learned=places_of(domain.learned if domain else []))


def places_of(learned: Iterable[Mapping[str, Any]]) -> tuple[LearnedPlace, ...]:
    return tuple(LearnedPlace(**place) for place in learned)


def _domains(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, tuple[str, tuple[LearnedPlace, ...]]]:
    rows = Domain.objects.filter(id__in=ids).values_list("id", "parser_name", "learned")
    return {key: (name, places_of(learned)) for key, name, learned in rows}


def _websites(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Speech]:
    if not ids:
        return {}
    rows = Website.objects.filter(id__in=ids).values_list("id", "currency", "locale")
    return {key: Speech(currency, locale) for key, currency, locale in rows}
