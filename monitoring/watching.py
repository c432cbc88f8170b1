"""Single product pages that somebody names: watched at once, without discovery."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from accounts.audit import Actor
from accounts.models import Client
from common.errors import Conflict, Invalid, Refused
from common.http import Policy
from common.urls import host_of, normalize_url, url_hash
from crawling.fetching import same_shop
from crawling.frontier import hold_websites
from monitoring import approval, candidates
from monitoring.models import Product, Website

MAX_LINES = 1000
BY_HAND = "Named by hand"


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one line of a list."""

    line: int
    url: str
    result: str
    id: uuid.UUID | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A page, and the website it belongs to."""

    website_id: uuid.UUID
    url: str
    digest: str

    @property
    def key(self) -> tuple[uuid.UUID, str]:
        return self.website_id, self.digest


@dataclass(frozen=True, slots=True)
class Found:
    product: Product
    is_new: bool


def watch(client: Client, url: str, *, website_id: uuid.UUID | None, actor: Actor) -> Product:
    """Watch one page of a registered shop from now on."""
    place = _place(list(_websites(client)), url, website_id)
    with transaction.atomic():
        product = _candidates([place])[0].product
        if product.approval == Product.Approval.APPROVED:
            raise Conflict(f"Product {product.pk} watches this page already.", attr="url")
        approval.approve([product.pk], actor=actor)
    product.refresh_from_db()
    return product


def import_urls(
    client: Client,
    urls: Sequence[str],
    *,
    website_id: uuid.UUID | None = None,
    approve: bool = True,
    dry_run: bool = True,
    actor: Actor,
) -> list[Line]:
    """Many pages, an answer for each line; a dry run does the same and takes it back."""
    if len(urls) > MAX_LINES:
        raise Invalid(f"At most {MAX_LINES} lines at a time.", attr="items")
    websites = list(_websites(client))
    places = [_try_place(websites, url, website_id) for url in urls]
    with transaction.atomic():
        lines = _take(urls, places)
        if approve:
            lines = _approve(lines, actor)
        if dry_run:
            transaction.set_rollback(True)
    return lines


def _take(urls: Sequence[str], places: Sequence[Place | Refused]) -> list[Line]:
    found = iter(_candidates([place for place in places if isinstance(place, Place)]))
    return [
        Line(number, url, "refused", detail=place.detail)
        if isinstance(place, Refused)
        else _found(number, url, next(found))
        for number, (url, place) in enumerate(zip(urls, places, strict=True), 1)
    ]


def _found(number: int, url: str, found: Found) -> Line:
    product = found.product
    if product.approval == Product.Approval.APPROVED:
        return Line(number, url, "unchanged", product.pk, "Watched already.")
    return Line(number, url, "candidate" if found.is_new else "known", product.pk)


def _approve(lines: Sequence[Line], actor: Actor) -> list[Line]:
    """Website by website: a full quota refuses the lines of that one only."""
    ids = {one.id for one in lines if one.id and one.result in ("candidate", "known")}
    owners = dict(Product.objects.filter(id__in=ids).values_list("id", "website_id"))
    refusals: dict[uuid.UUID, str] = {}
    for website_id in sorted(set(owners.values())):
        mine = [pk for pk in owners if owners[pk] == website_id]
        try:
            with transaction.atomic():
                approval.approve(mine, actor=actor)
        except Refused as refused:
            refusals |= dict.fromkeys(mine, refused.detail)
    return [_approved(one, owners, refusals) for one in lines]


def _approved(
    one: Line, owners: dict[uuid.UUID, uuid.UUID], refusals: dict[uuid.UUID, str]
) -> Line:
    if one.id is None or one.id not in owners:
        return one
    if one.id in refusals:
        return Line(one.line, one.url, "refused", detail=refusals[one.id])
    return Line(one.line, one.url, "watched", one.id)


def _websites(client: Client) -> Sequence[Website]:
    return list(Website.objects.for_client(client).select_related("client"))


def _try_place(websites: Sequence[Website], url: str, wanted: uuid.UUID | None) -> Place | Refused:
    try:
        return _place(websites, url, wanted)
    except Refused as refused:
        return refused


def _place(websites: Sequence[Website], url: str, wanted: uuid.UUID | None) -> Place:
    """The website a page belongs to; its address was checked when it was registered, and
    the door checks again before every request."""
    try:
        parsed = Policy.from_settings().parse(url)
    except Refused as refused:
        raise type(refused)(refused.detail, attr="url") from refused
    mine = [site for site in websites if wanted in (None, site.pk)]
    if not mine:
        raise Invalid("No such website.", attr="website")
    found = [site for site in mine if same_shop(site.base_url, parsed)]
    if not found:
        raise Invalid(f"Register a website on {host_of(parsed)} first.", attr="url")
    if len(found) > 1:
        raise Invalid("Several websites are on this host: say which.", attr="website")
    return Place(found[0].pk, parsed, url_hash(normalize_url(parsed)))


def _candidates(places: Sequence[Place]) -> list[Found]:
    """The product at each address, made where there is none; only their websites wait."""
    hold_websites({place.website_id for place in places})
    known = _known(places)
    fresh: dict[uuid.UUID, list[Product]] = defaultdict(list)
    found = []
    for place in places:
        product, is_new = known.get(place.key), False
        if product is None:
            product, is_new = (
                candidates.from_pattern(place.website_id, place.url, 1.0, BY_HAND),
                True,
            )
            known[place.key] = product
            fresh[place.website_id].append(product)
        found.append(Found(product, is_new))
    for website_id in sorted(fresh):
        candidates.keep(website_id, fresh[website_id])
    return found


def _known(places: Sequence[Place]) -> dict[tuple[uuid.UUID, str], Product]:
    """By their own address, or by the one their page calls its own."""
    digests = [place.digest for place in places]
    rows = Product.objects.filter(
        Q(url_hash__in=digests) | Q(canonical_hash__in=digests),
        website_id__in={place.website_id for place in places},
    ).only("id", "website_id", "url_hash", "canonical_hash", "approval")
    known: dict[tuple[uuid.UUID, str], Product] = {}
    for product in sorted(rows, key=lambda row: row.pk):
        known[product.website_id, product.url_hash] = product
    for product in sorted(rows, key=lambda row: row.pk):
        known.setdefault((product.website_id, product.canonical_hash), product)
    return known
