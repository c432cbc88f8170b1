"""The proxies of the installation as operators keep them: made, changed, tried, assigned."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NotRequired, TypedDict, Unpack, cast
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from common.crypto import Undecryptable
from common.errors import Conflict, Invalid, Refused
from common.http import Egress, FetchFailed, Policy, ProxyAddress, check_target
from common.urls import host_and_port
from crawling.models import Domain, DomainProxy, Proxy
from crawling.proxies import PROXY, Outcome, address_of, note

TEST_SECONDS = 10
MAX_IMPORT_LINES = 10_000
SECRETS = ("password",)
UNREADABLE = (
    "no key in FIELD_ENCRYPTION_KEYS reads its password: add the old key to the end of them,"
    " or delete the proxy and add it again"
)
_NOT_A_HOST = re.compile(r"[/?#@\\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Fields(TypedDict):
    """What of a proxy can be set."""

    protocol: NotRequired[str]
    host: NotRequired[str]
    port: NotRequired[int]
    username: NotRequired[str]
    password: NotRequired[str]
    pool: NotRequired[str]
    country_code: NotRequired[str]
    city: NotRequired[str]
    provider: NotRequired[str]
    monthly_cost: NotRequired[Decimal | None]
    max_requests_per_hour: NotRequired[int | None]


class MappingFields(TypedDict):
    priority: NotRequired[int]
    is_active: NotRequired[bool]


FIELDS = tuple(Fields.__annotations__)
MAPPING_FIELDS = tuple(MappingFields.__annotations__)


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test request through a proxy went; ``error`` is empty when it went well."""

    ok: bool
    status: int | None = None
    elapsed_ms: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an import: created, duplicate or invalid. Never shows the login."""

    number: int
    result: str
    proxy: str = ""
    detail: str = ""
    id: uuid.UUID | None = None


def create_proxy(*, actor: Actor, **fields: Unpack[Fields]) -> Proxy:
    proxy = Proxy(**_tidy(fields))
    check_proxy(proxy)
    return _insert(proxy, actor)


def check_proxy(proxy: Proxy) -> None:
    """Refuse what cannot be a proxy, and what lies in a network that must not be reached."""
    _check(proxy)
    check_target(_url(proxy), Policy.from_settings().for_proxies())


@transaction.atomic
def update_proxy(proxy: Proxy, *, actor: Actor, **changes: Unpack[Fields]) -> Proxy:
    locked = _lock(proxy)
    before = _facts(locked)
    for name, value in _tidy(changes).items():
        setattr(locked, name, value)
    _check(locked)
    if {"host", "port"} & {name for name in FIELDS if before[name] != _facts(locked)[name]}:
        check_target(_url(locked), Policy.from_settings().for_proxies())
    _save(locked, before, FIELDS, actor)
    return locked


@transaction.atomic
def delete_proxy(proxy: Proxy, *, actor: Actor) -> None:
    """With its assignments: a domain that loses its last one is crawled directly again."""
    audit.record(actor, "delete", proxy, before=_shown(_facts(proxy), FIELDS))
    proxy.delete()


def enable(proxy: Proxy, *, actor: Actor) -> Proxy:
    """Use it again, with its failures forgotten."""
    return _switch(proxy, actor, "enable", is_active=True, reason="")


def disable(proxy: Proxy, *, actor: Actor, reason: str = "by an operator") -> Proxy:
    return _switch(proxy, actor, "disable", is_active=False, reason=reason)


@transaction.atomic
def _switch(proxy: Proxy, actor: Actor, verb: str, *, is_active: bool, reason: str) -> Proxy:
    locked = _lock(proxy)
    before = locked.is_active
    locked.is_active, locked.disabled_reason = is_active, reason
    if is_active:
        locked.consecutive_failures, locked.resting_until = 0, None
    locked.save()
    audit.record(actor, verb, locked, before={"is_active": before}, after={"is_active": is_active})
    return locked


def try_proxy(proxy: Proxy, *, actor: Actor, url: str = "") -> Trial:
    """Fetch a page through it now; success ends its rest, failure changes nothing."""
    (trial,) = try_many([proxy], actor=actor, url=url)
    return trial


def try_many(proxies: Sequence[Proxy], *, actor: Actor, url: str = "") -> list[Trial]:
    """All at the same time: many take no longer than the slowest. Refuses a page that must
    not be fetched; whatever else goes wrong is told by the trial of that proxy alone."""
    page, began_at = url or settings.PROXY_TEST_URL, timezone.now()
    policy = Policy.from_settings()
    policy.check_literally(*host_and_port(policy.parse(page)))
    ways = [_way(proxy) for proxy in proxies]
    trials = asyncio.run(_try_all(ways, page))
    for proxy, trial in zip(proxies, trials, strict=True):
        _note_trial(proxy, trial, began_at, actor)
    return trials


@transaction.atomic
def _note_trial(proxy: Proxy, trial: Trial, began_at: dt.datetime, actor: Actor) -> None:
    # The password may be what cannot be read.
    locked = Proxy.objects.select_for_update(no_key=True).defer(*SECRETS).get(pk=proxy.pk)
    if trial.ok:
        note(locked, Outcome(True, trial.elapsed_ms, began_at, timezone.now()), PROXY)  # noqa: FBT003
        locked.save()
    audit.record(actor, "test", locked, after={"ok": trial.ok, "status": trial.status})


def _way(proxy: Proxy) -> ProxyAddress | None:
    """None where its password cannot be read."""
    try:
        return address_of(proxy)
    except Undecryptable:
        return None


async def _try_all(ways: Sequence[ProxyAddress | None], url: str) -> list[Trial]:
    async with Egress() as egress:
        return await asyncio.gather(*(_try(egress, way, url) for way in ways))


async def _try(egress: Egress, way: ProxyAddress | None, url: str) -> Trial:
    if way is None:
        return Trial(False, error=UNREADABLE)  # noqa: FBT003
    try:
        answer = await egress.request("GET", url, proxy=way, timeout_seconds=TEST_SECONDS)
    except FetchFailed as failed:
        # A page that fails behind a proxy that works is no failure of the proxy.
        return Trial(not failed.via_proxy, error=failed.message)
    return Trial(True, answer.status, answer.elapsed_ms)  # noqa: FBT003


@transaction.atomic
def assign(domain: Domain, proxy: Proxy, *, actor: Actor, priority: int = 5) -> DomainProxy:
    """From now on the domain is crawled through its proxies only."""
    mapping = DomainProxy(domain=domain, proxy=proxy, priority=priority)
    _clean(mapping)
    try:
        with transaction.atomic():
            mapping.save(force_insert=True)
    except IntegrityError:
        raise Conflict("The proxy is assigned to this domain already: change it.") from None
    audit.record(actor, "assign", mapping, after={"priority": priority})
    return mapping


@transaction.atomic
def update_mapping(
    mapping: DomainProxy, *, actor: Actor, **changes: Unpack[MappingFields]
) -> DomainProxy:
    locked = DomainProxy.objects.select_for_update(no_key=True, of=("self",))
    found = locked.select_related("domain", "proxy").get(pk=mapping.pk)
    before = {name: getattr(found, name) for name in MAPPING_FIELDS}
    for name, value in changes.items():
        setattr(found, name, value)
    _clean(found)
    if found.is_active and not before["is_active"]:
        found.consecutive_failures, found.resting_until = 0, None
        found.save(update_fields=["consecutive_failures", "resting_until"])
    _save(found, before, MAPPING_FIELDS, actor)
    return found


@transaction.atomic
def unassign(mapping: DomainProxy, *, actor: Actor) -> None:
    audit.record(actor, "unassign", mapping, before={"priority": mapping.priority})
    mapping.delete()


@transaction.atomic
def import_proxies(
    text: str, *, actor: Actor, dry_run: bool = False, **defaults: Unpack[Fields]
) -> list[Line]:
    """Lines of host:port, host:port:user:password or URLs; a bad line stops no other."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if len(lines) > MAX_IMPORT_LINES:
        raise Invalid(f"At most {MAX_IMPORT_LINES} lines at once.", attr="text")
    keys = ("protocol", "host", "port", "username")
    known = set(Proxy.objects.values_list(*keys))
    results, made = [], []
    for number, line in lines:
        try:
            proxy = _read_line(line, defaults)
        except Refused as refused:
            results.append(Line(number, "invalid", detail=refused.detail))
            continue
        key = (proxy.protocol, proxy.host, proxy.port, proxy.username)
        if key in known:
            results.append(Line(number, "duplicate", str(proxy)))
            continue
        known.add(key)
        made.append(proxy)
        results.append(Line(number, "created", str(proxy), id=None if dry_run else proxy.id))
    if not dry_run:
        _insert_many(made, actor)
    return results


def _insert_many(proxies: list[Proxy], actor: Actor) -> None:
    try:
        with transaction.atomic():
            Proxy.objects.bulk_create(proxies, batch_size=1000)
    except IntegrityError:
        raise Conflict("Somebody added one of these meanwhile: import them again.") from None
    audit.record_many(actor, "import", proxies)


def _read_line(line: str, defaults: Fields) -> Proxy:
    proxy = Proxy(**_tidy({**defaults, **(_of_url(line) if "://" in line else _of_parts(line))}))
    _check(proxy)
    policy = Policy.from_settings().for_proxies()
    # Names are looked up when they are used: an import must not wait for DNS.
    policy.check_literally(*host_and_port(policy.parse(_url(proxy))))
    return proxy


def _of_url(line: str) -> dict[str, Any]:
    try:
        parts = urlsplit(line)
        return {
            "protocol": parts.scheme.lower(),
            "host": parts.hostname or "",
            "port": _port(str(parts.port or "")),
            "username": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
        }
    except ValueError:
        raise Invalid("Not an address: write protocol://user:password@host:port.") from None


def _of_parts(line: str) -> dict[str, Any]:
    match = re.fullmatch(r"(\[[^\]]+\]|[^:]+):(\d+)(?::([^:]*):(.*))?", line)
    if match is None:
        raise Invalid("Write host:port, host:port:user:password or a URL.")
    host, port, username, password = match.groups(default="")
    login = {"username": username, "password": password} if username else {}
    return {"host": host.strip("[]"), "port": _port(port), **login}


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text):
        raise Invalid("Name the port.", attr="port")
    return int(text)


def _tidy(fields: Any) -> dict[str, Any]:
    tidy = dict(fields)
    if "host" in tidy:
        tidy["host"] = tidy["host"].strip().strip("[]").lower()
    if "country_code" in tidy:
        tidy["country_code"] = tidy["country_code"].upper()
    return tidy


def _url(proxy: Proxy) -> str:
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    return f"http://{host}:{proxy.port}/"


def _check(proxy: Proxy) -> None:
    for name in ("username", "password"):
        text = getattr(proxy, name)
        if _CONTROL.search(text) or len(text.encode()) > 255:
            raise Invalid("At most 255 bytes without control characters.", attr=name)
    if _NOT_A_HOST.search(proxy.host):
        raise Invalid("Only a name or an address, without scheme, path and login.", attr="host")
    if proxy.country_code and not re.fullmatch(r"[A-Z]{2}", proxy.country_code):
        raise Invalid("Two letters, such as DE.", attr="country_code")
    if ":" in proxy.username and proxy.protocol != Proxy.Protocol.SOCKS5:
        raise Invalid("HTTP proxies allow no colon in a user name.", attr="username")
    _clean(proxy)


def _clean(row: Proxy | DomainProxy) -> None:
    try:
        row.clean_fields(exclude=["domain", "proxy"])
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Invalid(texts[0], attr=name) from None


@transaction.atomic
def _insert(proxy: Proxy, actor: Actor) -> Proxy:
    try:
        with transaction.atomic():
            proxy.save(force_insert=True)
    except IntegrityError:
        raise _known() from None
    audit.record(actor, "create", proxy, after=_shown(_facts(proxy), FIELDS))
    return proxy


def _save(row: Any, before: dict[str, Any], fields: tuple[str, ...], actor: Actor) -> None:
    """Only what changed: a worker may be writing the rest."""
    changed = [name for name in fields if before[name] != getattr(row, name)]
    if not changed:
        return
    try:
        with transaction.atomic():
            row.save(update_fields=[*changed, "updated_at"])
    except IntegrityError:
        raise _known() from None
    after = {name: getattr(row, name) for name in changed}
    audit.record(actor, "update", row, before=_shown(before, changed), after=_shown(after, changed))


def _known() -> Conflict:
    return Conflict("There is a proxy with this protocol, host, port and user name already.")


def _lock(proxy: Proxy) -> Proxy:
    return Proxy.objects.select_for_update(no_key=True).get(pk=proxy.pk)


def _facts(proxy: Proxy) -> dict[str, Any]:
    return {name: getattr(proxy, name) for name in FIELDS}


def _shown(facts: dict[str, Any], names: Any) -> dict[str, Any]:
    """For the log, which must not know secrets."""
    shown = {name: facts[name] for name in names if name in facts}
    for name in set(SECRETS) & shown.keys():
        shown[name] = "set" if shown[name] else ""
    return cast(
        "dict[str, Any]", {k: str(v) if isinstance(v, Decimal) else v for k, v in shown.items()}
    )
