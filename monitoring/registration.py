"""A client registers a shop."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count

from accounts import audit
from accounts.audit import Actor
from accounts.models import Client
from common.errors import Conflict, DomainBlocked, LimitReached, Refused, UrlInvalid
from common.http import Policy, check_target
from common.urls import host_of, normalize_url, url_hash
from crawling.models import Domain
from crawling.profiles import check_usable
from monitoring import runs, schedules
from monitoring.models import Product, Website
from monitoring.url_patterns import check_patterns, checked_rule
from notifications import endpoints

MAX_SEEDS = 100


@dataclass(frozen=True)
class Registration:
    """What a client asks for."""

    base_url: str
    seed_urls: Sequence[str] = ()
    name: str = ""
    kind: str = Website.Kind.SHOP
    crawl_frequency_minutes: int = Website.Frequency.DAILY
    price_change_threshold_pct: Decimal = Decimal("1.00")
    price_change_threshold_abs: Decimal | None = None
    retention_days: int = 90
    crawl_profile_id: uuid.UUID | None = None
    currency: str = ""
    locale: str = ""
    webhook_endpoint_url: str | None = None
    webhook_enabled: bool = True
    discovery_max_pages: int | None = None
    auto_approve: dict[str, Any] | None = None
    banned_patterns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A registration whose addresses may be asked for."""

    wanted: Registration
    base_url: str
    seeds: list[str]
    webhook_url: str | None


def register_website(client: Client, wanted: Registration, *, actor: Actor) -> Website:
    """Keep the shop, make its schedule and start discovery; nothing is kept on refusal."""
    return keep_website(client, check_registration(client, wanted), actor=actor)


def check_registration(client: Client, wanted: Registration) -> Checked:
    """Asks the DNS: call it before rows are locked."""
    base_url = _naming("base_url", check_target, wanted.base_url).partition("?")[0]
    host = host_of(base_url)
    seeds = [_seed(url, host, index) for index, url in enumerate(wanted.seed_urls or [base_url])]
    _refuse_blocked(host)
    check_usable(client, wanted.crawl_profile_id, attr="crawl_profile_id")
    webhook_url = checked_webhook(wanted.webhook_endpoint_url)
    wanted = replace(
        wanted,
        auto_approve=checked_rule(wanted.auto_approve),
        banned_patterns=check_patterns(wanted.banned_patterns, attr="banned_patterns"),
    )
    return Checked(wanted, base_url, seeds, webhook_url)


@transaction.atomic
def keep_website(client: Client, checked: Checked, *, actor: Actor) -> Website:
    _respect_quota(client)
    website = _create(client, checked.wanted, checked.base_url, checked.seeds)
    schedule = schedules.create_schedule(website)
    Website.objects.filter(pk=website.pk).update(periodic_task=schedule)
    website.periodic_task = schedule
    if checked.webhook_url:
        connect_webhook(website, checked.webhook_url, actor=actor)
    audit.record(actor, "register", website, client_id=client.pk, after=facts(website))
    runs.start_discovery(website, triggered_by="api")
    return website


def checked_webhook(url: str | None) -> str | None:
    """May ask the DNS: call it before rows are locked."""
    return _naming("webhook_endpoint_url", endpoints.checked_url, url) if url else None


def connect_webhook(website: Website, url: str | None, *, actor: Actor) -> None:
    """The website's own endpoint, on while ``webhook_enabled``; without a URL it goes."""
    endpoint = endpoints.set_website_endpoint(website.client, website.pk, url, actor=actor)
    if endpoint is not None and endpoint.is_active != website.webhook_enabled:
        endpoints.update_endpoint(endpoint, actor=actor, is_active=website.webhook_enabled)


def facts(website: Website) -> dict[str, Any]:
    """What an audit entry shows of a website."""
    return {
        "name": website.name,
        "base_url": website.base_url,
        "status": website.status,
        "crawl_frequency_minutes": website.crawl_frequency_minutes,
        "price_change_threshold_pct": str(website.price_change_threshold_pct),
        "price_change_threshold_abs": _text(website.price_change_threshold_abs),
        "retention_days": website.retention_days,
        "crawl_profile_id": _text(website.crawl_profile_id),
        "currency": website.currency,
        "locale": website.locale,
        "webhook_enabled": website.webhook_enabled,
        "discovery_max_pages": website.discovery_max_pages,
        "auto_approve": website.auto_approve,
        "banned_patterns": website.banned_patterns,
    }


def _text(amount: Decimal | uuid.UUID | None) -> str | None:
    return None if amount is None else str(amount)


def _create(client: Client, wanted: Registration, base_url: str, seeds: list[str]) -> Website:
    website = Website(
        client=client,
        name=wanted.name or host_of(base_url),
        base_url=base_url,
        base_url_hash=url_hash(normalize_url(base_url)),
        seed_urls=seeds,
        kind=wanted.kind,
        crawl_frequency_minutes=wanted.crawl_frequency_minutes,
        price_change_threshold_pct=wanted.price_change_threshold_pct,
        price_change_threshold_abs=wanted.price_change_threshold_abs,
        retention_days=wanted.retention_days,
        crawl_profile_id=wanted.crawl_profile_id,
        currency=wanted.currency,
        locale=wanted.locale,
        webhook_enabled=wanted.webhook_enabled,
        discovery_max_pages=wanted.discovery_max_pages,
        auto_approve=wanted.auto_approve,
        banned_patterns=list(wanted.banned_patterns),
    )
    try:
        with transaction.atomic():
            website.save(force_insert=True)
    except IntegrityError as error:
        message = "This website is already registered; use the existing one or delete it first."
        raise Conflict(message, attr="base_url") from error
    return website


def _naming(attr: str, check: Callable[[str], str], url: str) -> str:
    try:
        return check(url)
    except Refused as refused:
        raise type(refused)(refused.detail, attr=attr) from refused


def _seed(url: str, host: str, index: int) -> str:
    """On the host of ``base_url``, whose address was looked up: once is enough."""
    attr = f"seed_urls.{index}"
    parsed = _naming(attr, Policy.from_settings().parse, url)
    if host_of(parsed) != host:
        raise UrlInvalid(f"Seed URLs must be on {host}, the host of base_url.", attr=attr)
    return parsed


def _refuse_blocked(host: str) -> None:
    if Domain.objects.filter(host=host, is_blocked=True).exists():
        raise DomainBlocked("This shop is blocked here; ask the operator.", attr="base_url")


def _respect_quota(client: Client) -> None:
    # Two registrations at once must not both be the last one allowed.
    locked = Client.objects.select_for_update(no_key=True).get(pk=client.pk)
    if Website.objects.for_client(client).count() >= locked.max_websites:
        raise LimitReached(
            f"Your plan allows {locked.max_websites} websites (max_websites); "
            "delete one or ask the operator for more.",
            attr="base_url",
        )


def usage(client_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, dict[str, int]]:
    """How much of the quotas each client uses, for ``GET /me`` and the console."""
    shops = Website.objects.filter(client__in=client_ids).order_by()
    products = Product.objects.filter(
        website__client__in=client_ids, approval=Product.Approval.APPROVED
    ).order_by()
    websites = dict(shops.values_list("client_id").annotate(Count("id")))
    watched = dict(products.values_list("website__client_id").annotate(Count("id")))
    return {
        pk: {"websites": websites.get(pk, 0), "products": watched.get(pk, 0)} for pk in client_ids
    }
