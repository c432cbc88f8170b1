"""Bad logins: five for one name from one address, and both must wait. Counted in the database
before the password is looked at, so guesses at the same time do not slip past."""

from __future__ import annotations

import datetime as dt
import ipaddress
import math

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts import audit
from accounts.audit import Actor
from accounts.models import FailedLogin
from common.errors import LimitReached

LIMIT = 5
# Of all names together, for who tries one password on many of them.
ADDRESS_LIMIT = 50
ANYBODY = ""
LOCKED_FOR = dt.timedelta(minutes=15)
KEPT_FOR = dt.timedelta(days=7)
# One household or server has that many addresses of its own.
IPV6_PREFIX = 64
INSIDE = [
    ipaddress.ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
]


def count_try(username: str, address: str) -> None:
    """Before the password is looked at; refuses who must wait."""
    place = place_of(address)
    limits = [(username, LIMIT)]
    if not is_inside(address):
        limits.insert(0, (ANYBODY, ADDRESS_LIMIT))
    for name, limit in limits:
        row = _counted(name, place, limit)
        if row.failures > limit:
            raise LimitReached(text_of(row))


def refuse_if_last(username: str, address: str) -> None:
    """After a bad password: the last one that was allowed says how long to wait."""
    row = FailedLogin.objects.filter(username=username, address=place_of(address)).first()
    if row is not None and row.failures >= LIMIT:
        audit.record(audit.SYSTEM, "lock_out", row, after={"failures": row.failures})
        raise LimitReached(text_of(row))


def forget(username: str, address: str) -> None:
    """The password was right."""
    place = place_of(address)
    FailedLogin.objects.filter(username=username, address=place).delete()
    FailedLogin.objects.filter(username=ANYBODY, address=place, failures__gt=0).update(
        failures=F("failures") - 1
    )


@transaction.atomic
def unlock(row: FailedLogin, *, actor: Actor) -> None:
    audit.record(actor, "unlock", row, before={"failures": row.failures})
    row.delete()


def forget_old() -> int:
    return FailedLogin.objects.filter(last_at__lt=timezone.now() - KEPT_FOR).delete()[0]


def locked_until(row: FailedLogin) -> dt.datetime | None:
    limit = LIMIT if row.username else ADDRESS_LIMIT
    until = row.last_at + LOCKED_FOR
    return until if row.failures >= limit and until > timezone.now() else None


def text_of(row: FailedLogin) -> str:
    until = locked_until(row) or timezone.now()
    minutes = max(1, math.ceil((until - timezone.now()).total_seconds() / 60))
    plural = "" if minutes == 1 else "s"
    return (
        f"Too many failed logins. Wait {minutes} minute{plural}, or ask an admin to unlock you:"
        " Accounts, Locked logins."
    )


def is_inside(address: str) -> bool:
    """Everybody may share it: that of a proxy nobody declared, or of a home."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in INSIDE)


def place_of(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network(f"{parsed}/{IPV6_PREFIX}", strict=False))


@transaction.atomic
def _counted(username: str, place: str, limit: int) -> FailedLogin:
    now = timezone.now()
    FailedLogin.objects.get_or_create(
        username=username, address=place, defaults={"failures": 0, "last_at": now}
    )
    row = FailedLogin.objects.select_for_update().get(username=username, address=place)
    if row.last_at <= now - LOCKED_FOR:
        row.failures = 0
    row.failures += 1
    # Who is locked out and goes on trying waits no longer for it.
    if row.failures <= limit:
        row.last_at = now
    row.save()
    return row
