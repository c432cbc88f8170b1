"""Single product pages that somebody names: watched at once, without discovery."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

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


def watch(client: Client, url: str, *, website_id: uuid.UUID | None, actor: Actor) -> Product:
    """Watch one page of a registered shop from now on."""
    website, parsed = _place(list(_websites(client)), url, website_id)
    with transaction.atomic():
        product, _ = _candidate(website, parsed)
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
    with transaction.atomic():
        hold_websites(website.pk for website in websites)
        lines = [_take(number, url, websites, website_id) for number, url in enumerate(urls, 1)]
        if approve:
            lines = _approve(lines, actor)
        if dry_run:
            transaction.set_rollback(True)
    return lines


def _take(number: int, url: str, websites: Sequence[Website], wanted: uuid.UUID | None) -> Line:
    try:
        website, parsed = _place(websites, url, wanted)
    except Refused as refused:
        return Line(number, url, "refused", detail=refused.detail)
    product, is_new = _candidate(website, parsed)
    if product.approval == Product.Approval.APPROVED:
        return Line(number, url, "unchanged", product.pk, "Watched already.")
    return Line(number, url, "candidate" if is_new else "known", product.pk)


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


def _place(websites: Sequence[Website], url: str, wanted: uuid.UUID | None) -> tuple[Website, str]:
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
    return found[0], parsed


def _candidate(website: Website, url: str) -> tuple[Product, bool]:
    """The product at this address, made where there is none; and whether it was."""
    hold_websites([website.pk])
    digest = url_hash(normalize_url(url))
    known = website.products.filter(url_hash=digest).first()
    if known is not None:
        return known, False
    product = candidates.from_pattern(website.pk, url, 1.0, BY_HAND)
    candidates.keep(website.pk, [product])
    return product, True
