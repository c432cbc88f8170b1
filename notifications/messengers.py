"""Apprise, kept inside the guard: vetted services only, and every address that its code
dials is checked at the very moment it is dialled. See docs/decisions/0006-apprise-in-the-guard.md.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import apprise
from apprise.common import PersistentStoreMode
from django.conf import settings

from common.errors import Refused, UrlBlocked, UrlInvalid
from common.guard import Policy, check_target

URL_CHARS = 2048
CONNECT_SECONDS = 5.0
READ_SECONDS = 10.0
MAIL_PORTS = frozenset({25, 465, 587, 2525})
# Services with one address of their own, spoken to over TLS by requests.
HOSTED = frozenset(
    [
        "discord",
        "gchat",
        "ifttt",
        "line",
        "mailgun",
        "opsgenie",
        "pagerduty",
        "pbul",
        "pover",
        "sendgrid",
        "slack",
        "tgram",
        "twilio",
        "workflows",
        "wxteams",
    ]
)
# Servers of the client's own: their host is in the URL, and checked when it is saved.
OWN_SECURE = frozenset(
    ["apprises", "forms", "gotifys", "jsons", "matrixs", "mmosts", "ntfys", "rockets", "xmls"]
)
OWN_PLAIN = frozenset(["form", "gotify", "json", "mmost", "ntfy", "rocket", "xml"])
MAIL = frozenset({"mailto", "mailtos"})
SCHEMES = HOSTED | OWN_SECURE | OWN_PLAIN | MAIL


class NotSent(Exception):
    """The service did not take the message."""


# Its lines show parts of URLs, and those hold passwords.
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)

_guarded = threading.local()
_hooked = threading.Lock()
_hooks: list[bool] = []


def checked_url(url: str) -> str:
    """The URL, if its service is known and its host is one that may be spoken to."""
    if len(url) > URL_CHARS or any(ord(char) < 32 for char in url):
        raise UrlInvalid(f"At most {URL_CHARS} characters, on one line.", attr="url")
    scheme = urlsplit(url).scheme.lower() if "://" in url else ""
    if scheme not in SCHEMES:
        known = ", ".join(sorted(SCHEMES - OWN_PLAIN))
        raise UrlInvalid(f"Start the URL with one of: {known}.", attr="url")
    if scheme in OWN_PLAIN and not settings.WEBHOOK_ALLOW_HTTP:
        raise UrlInvalid(f"Use {scheme}s://: news must not travel in the open.", attr="url")
    host = _host(_service(url), scheme)
    if host:
        _check_host(*host)
    return url


def send(url: str, *, title: str, body: str) -> None:
    """Send one message; raises ``NotSent`` or a refusal when that cannot be done."""
    service = _service(checked_url(url))
    with _inside_the_guard(_policy()):
        try:
            sent = service.notify(body=body, title=title)
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - the plug-ins raise whatever they like
            raise NotSent(f"the service failed: {type(error).__name__}") from None
        if _guarded.refused:
            raise UrlBlocked("The address of this service cannot be used.", attr="url")
    if not sent:
        raise NotSent("the service refused the message or did not answer")


def _service(url: str) -> Any:
    asset = apprise.AppriseAsset(
        async_mode=False, storage_mode=PersistentStoreMode.MEMORY, app_id="Obsrv", app_desc="Obsrv"
    )
    try:
        service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    except Exception:  # noqa: BLE001 - parsers of 250 services
        service = None
    if service is None:
        raise UrlInvalid("The service cannot read this URL: see its page at Apprise.", attr="url")
    service.verify_certificate = True
    service.socket_connect_timeout, service.socket_read_timeout = CONNECT_SECONDS, READ_SECONDS
    return service


def _host(service: Any, scheme: str) -> tuple[str, int] | None:
    if scheme in HOSTED or getattr(service, "mode", None) == "cloud":
        return None
    if scheme in MAIL:
        return service.smtp_host, service.port or 587
    return service.host, service.port or (80 if scheme in OWN_PLAIN else 443)


def _check_host(host: str, port: int) -> None:
    if not host:
        raise UrlInvalid("The URL names no host.", attr="url")
    name = f"[{host}]" if ":" in host else host
    try:
        check_target(f"https://{name}:{port}/", _policy())
    except Refused as refused:
        refused.attr = "url"
        raise


def _policy() -> Policy:
    policy = Policy.from_settings()
    return replace(policy, ports=policy.ports | MAIL_PORTS)


@contextmanager
def _inside_the_guard(policy: Policy) -> Iterator[None]:
    """Whatever this thread dials meanwhile is checked first."""
    with _hooked:
        if not _hooks:
            # Hooks cannot be taken away again; this one does nothing to other threads.
            sys.addaudithook(_watch)
            _hooks.append(True)
    _guarded.policy, _guarded.refused = policy, False
    try:
        yield
    finally:
        _guarded.policy = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
        return
    policy = getattr(_guarded, "policy", None)
    if policy is None:
        return
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        _check_address(policy, arguments[1])
    elif not event.startswith("socket."):
        _refuse()


def _check_address(policy: Policy, address: Any) -> None:
    try:
        host, port = address[:2]
        policy.check([ip_address(host)], port)
    except (UrlBlocked, ValueError, TypeError):
        _refuse()


def _refuse() -> None:
    _guarded.refused = True
    raise ConnectionRefusedError("refused by the guard")
