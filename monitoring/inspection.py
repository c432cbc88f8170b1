"""What a URL is, before anybody asks for it: identity, address, manners, and whose it is."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from accounts.models import Client
from common.errors import Refused
from common.guard import check_target
from common.urls import host_of, normalize_url, parse_url, url_hash
from crawling.looking import robots_verdict
from crawling.models import Domain
from extraction.identity import product_id_from_url
from monitoring.models import Product


@dataclass(frozen=True, slots=True)
class Inspection:
    url: str
    normalized_url: str
    url_hash: str
    host: str
    product_id: str
    # ok or blocked: one word, since more would tell what our network looks like.
    address: str
    robots: str
    domain: str
    duplicate_of: uuid.UUID | None
    duplicate_approval: str


def inspect_url(text: str, *, client: Client | None) -> Inspection:
    """Raises ``UrlInvalid`` where the text is no address at all."""
    url = parse_url(text, allow_local=True)
    normalized = normalize_url(url)
    domain = Domain.objects.filter(host=host_of(url)).first()
    twin = _twin(url_hash(normalized), client)
    return Inspection(
        url=url,
        normalized_url=normalized,
        url_hash=url_hash(normalized),
        host=host_of(url),
        product_id=product_id_from_url(url),
        address=_address(url),
        robots=robots_verdict(domain, url),
        domain=_state(domain),
        duplicate_of=twin[0] if twin else None,
        duplicate_approval=twin[1] if twin else "",
    )


def _address(url: str) -> str:
    try:
        check_target(url)
    except Refused:
        return "blocked"
    return "ok"


def _state(domain: Domain | None) -> str:
    if domain is None:
        return "unknown"
    if domain.is_blocked or not domain.is_active:
        return "blocked"
    return "active" if domain.breaker_state == Domain.Breaker.CLOSED else "circuit_open"


def _twin(digest: str, client: Client | None) -> tuple[uuid.UUID, str] | None:
    """Only the client's own: what others watch is their business."""
    if client is None:
        return None
    mine = Product.objects.filter(website__client=client).filter(url_hash=digest)
    return mine.order_by("created_at").values_list("pk", "approval").first()
