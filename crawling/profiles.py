"""Crawl profiles: named sets of crawl options, a client's own or the operator's."""

from __future__ import annotations

import re
import uuid
from typing import Any, NotRequired, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts import audit
from accounts.audit import Actor
from accounts.models import Client
from common.errors import Conflict, Invalid, LimitReached
from crawling.models import CrawlProfile

MAX_PROFILES = 100
MAX_HEADERS = 20
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
HEADER_TEXT = re.compile(r"[ -~]{0,1000}")
# Ours to send, or not to be forged.
FIXED_HEADERS = frozenset(
    [
        "host",
        "user-agent",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "te",
        "trailer",
        "expect",
        "upgrade",
        "proxy-authorization",
        "if-none-match",
        "if-modified-since",
        # A part of a page is no page.
        "range",
        "if-range",
    ]
)


class Changes(TypedDict):
    """What of a profile can be set."""

    name: NotRequired[str]
    max_depth: NotRequired[int]
    rate_limit_rps: NotRequired[float | None]
    respect_robots: NotRequired[bool]
    headers: NotRequired[dict[str, str]]
    timeout_seconds: NotRequired[int]
    max_page_bytes: NotRequired[int]
    max_redirects: NotRequired[int]
    extraction: NotRequired[dict[str, Any]]
    chunking: NotRequired[dict[str, Any]]


FIELDS = tuple(Changes.__annotations__)


def create_profile(
    client: Client | None, *, actor: Actor, by_operator: bool, **changes: Unpack[Changes]
) -> CrawlProfile:
    if CrawlProfile.objects.filter(client=client).count() >= MAX_PROFILES:
        raise LimitReached(f"At most {MAX_PROFILES} profiles: delete one first.")
    profile = CrawlProfile(client=client)
    return _save(profile, changes, actor, "create", by_operator=by_operator)


def update_profile(
    profile: CrawlProfile, *, actor: Actor, by_operator: bool, **changes: Unpack[Changes]
) -> CrawlProfile:
    return _save(profile, changes, actor, "update", by_operator=by_operator)


@transaction.atomic
def delete_profile(profile: CrawlProfile, *, actor: Actor) -> None:
    audit.record(actor, "delete", profile, client_id=profile.client_id, before=_facts(profile))
    profile.delete()


def check_usable(client: Client, profile_id: uuid.UUID | None, *, attr: str) -> None:
    """One of the client's own, or a shared one; None is none. Who shares one that passes over
    robots.txt means it for himself: a client gets its own from an operator."""
    shared = Q(client=None, respect_robots=True)
    offered = CrawlProfile.objects.filter(Q(client=client) | shared)
    if profile_id is not None and not offered.filter(pk=profile_id).exists():
        raise Invalid("No such crawl profile: list yours at /api/v1/crawl-profiles.", attr=attr)


def _save(
    profile: CrawlProfile, changes: Any, actor: Actor, verb: str, *, by_operator: bool
) -> CrawlProfile:
    before = _facts(profile) if verb == "update" else {}
    if changes.get("respect_robots") is False and not by_operator:
        raise Invalid("Only an operator may switch this off.", attr="respect_robots")
    for name, value in changes.items():
        setattr(profile, name, value)
    _check(profile)
    try:
        with transaction.atomic():
            profile.save()
            client_id = profile.client_id
            after = _facts(profile)
            audit.record(actor, verb, profile, client_id=client_id, before=before, after=after)
    except IntegrityError:
        raise Conflict("A profile of this name exists: choose another.", attr="name") from None
    return profile


def _check(profile: CrawlProfile) -> None:
    _check_headers(profile.headers)
    try:
        profile.clean_fields()
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from error


def _check_headers(headers: dict[str, str]) -> None:
    if len(headers) > MAX_HEADERS:
        raise Invalid(f"At most {MAX_HEADERS} headers.", attr="headers")
    if len({name.lower() for name in headers}) < len(headers):
        raise Invalid("A header is there twice: upper and lower case are one.", attr="headers")
    for name, text in headers.items():
        if not HEADER_NAME.fullmatch(name) or name.lower() in FIXED_HEADERS:
            raise Invalid(f"The header {name[:64]!r} cannot be set.", attr="headers")
        if not HEADER_TEXT.fullmatch(text):
            raise Invalid("Only printable ASCII, at most 1000 characters.", attr="headers")


def _facts(profile: CrawlProfile) -> dict[str, Any]:
    # Headers may hold a shop's password: the log tells their names.
    facts = {name: getattr(profile, name) for name in FIELDS}
    return facts | {"headers": sorted(profile.headers)}
