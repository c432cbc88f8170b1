"""Apprise, kept inside the guard: vetted services only, and every address that its code
dials is checked at the very moment it is dialled. See docs/decisions/0006-apprise-in-the-guard.md.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import TZPATH

import apprise
import requests
from apprise.common import PersistentStoreMode
from apprise.plugins import url_to_dict
from django.conf import settings

from common.errors import Refused, UrlBlocked, UrlInvalid
from common.guard import Policy, check_target

URL_CHARS = 2048
CONNECT_SECONDS = 5.0
READ_SECONDS = 10.0
# A service that answers drop by drop keeps within the two above for ever.
TOTAL_SECONDS = 30.0
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
        "wxteams",
    ]
)
# Servers of the client's own: their host is in the URL, and checked when it is saved.
OWN_SECURE = frozenset(
    [
        "apprises",
        "forms",
        "gotifys",
        "jsons",
        "matrixs",
        "mmosts",
        "ntfys",
        "rockets",
        "workflows",
        "xmls",
    ]
)
OWN_PLAIN = frozenset(["form", "gotify", "json", "mmost", "ntfy", "rocket", "xml"])
MAIL = frozenset({"mailto", "mailtos"})
SCHEMES = HOSTED | OWN_SECURE | OWN_PLAIN | MAIL
# They say who is told and how it looks. Others have a service read our files (template, attach,
# pgppub), fetch what they name, wait, or check less.
_HARMLESS = (
    "action actions alias api-version apikey auth avatar avatar_url batch bcc blocks botname cc"
    " channel channels class click component content dedup delay detect email emojis entity expire"
    " fields flags footer footer_logo format from group href hsreq icon_url id image"
    " integrationkey interval key mdv method mode msgtype name overflow pa pass password ping"
    " powerautomate preview priority region reply route routeid severity sid sig signature silent"
    " smtp sound source tags team thread threadkey timestamp to token topic tts tz url url_title"
    " user v ver version webhook workflow workspace wrap xtags"
)
PARAMETERS = frozenset(_HARMLESS.split())
# What a service hands on under the client's own names: headers, arguments, fields.
OWN_NAMES = ("+", "-", ":")

WATCHED = ("open", "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")
_CODE = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
READABLE = tuple(Path(place).resolve() for place in (*_CODE, *TZPATH))


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
    with _inside_the_guard(_Call(_policy())) as call:
        try:
            sent = service.notify(body=body, title=title)
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - the plug-ins raise whatever they like
            raise NotSent(f"the service failed: {type(error).__name__}") from None
        if call.refused:
            raise UrlBlocked("The address of this service cannot be used.", attr="url")
    if not sent:
        raise NotSent("the service refused the message or did not answer")


def _service(url: str) -> Any:
    """Read inside the guard as well: some services open what their URL names right away."""
    asset = apprise.AppriseAsset(
        async_mode=False, storage_mode=PersistentStoreMode.MEMORY, app_id="Obsrv", app_desc="Obsrv"
    )
    with _inside_the_guard(_Call(_policy())):
        try:
            facts = url_to_dict(url)  # type: ignore[no-untyped-call]
            _check_parameters((facts or {}).get("qsd") or {})
            service = facts and apprise.Apprise.instantiate(facts, asset=asset)
        except Refused:
            raise
        except Exception:  # noqa: BLE001 - parsers of 250 services
            service = None
    if service is None:
        raise UrlInvalid("The service cannot read this URL: see its page at Apprise.", attr="url")
    service.verify_certificate = True
    service.socket_connect_timeout, service.socket_read_timeout = CONNECT_SECONDS, READ_SECONDS
    return service


def _check_parameters(given: Iterable[str]) -> None:
    """By their names as Apprise itself has read them."""
    for name in given:
        if name and name not in PARAMETERS and not name.startswith(OWN_NAMES):
            raise UrlInvalid(f"Leave out the parameter {name[:40]}: it is not taken.", attr="url")


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


@dataclass
class _Call:
    """What is dialled for one message, and how to end it."""

    policy: Policy
    refused: bool = False
    over: bool = False
    lines: list[socket.socket] = field(default_factory=list)

    def dial(self, line: socket.socket, address: Any) -> None:
        self.check(address)
        # A second handle on the same connection: the plug-in's own may be wrapped in TLS.
        self.lines.append(socket.socket(fileno=os.dup(line.fileno())))
        if self.over:
            self.refuse()

    def check(self, address: Any) -> None:
        try:
            host, port = address[:2]
            self.policy.check([ip_address(host)], port)
        except (UrlBlocked, ValueError, TypeError):
            self.refused = True
            self.refuse()

    def read(self, path: Any, _mode: Any, flags: int) -> None:
        """Code and time zones only: no file is ever part of a message."""
        if isinstance(path, int):
            return
        place = Path(os.fsdecode(path)).resolve()
        readable = any(place.is_relative_to(one) for one in READABLE)
        if flags & (os.O_WRONLY | os.O_RDWR) or not readable:
            raise PermissionError("refused by the guard")

    def refuse(self) -> None:
        raise ConnectionRefusedError("refused by the guard")

    def hang_up(self) -> None:
        self.over = True
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for line in self.lines:
            line.close()


@contextmanager
def _inside_the_guard(call: _Call) -> Iterator[_Call]:
    """Whatever this thread dials meanwhile is checked first, and over when time is up."""
    with _hooked:
        if not _hooks:
            # Hooks cannot be taken away again; these do nothing to other threads.
            sys.addaudithook(_watch)
            _forget_environment()
            _hooks.append(True)
    alarm = threading.Timer(TOTAL_SECONDS, call.hang_up)
    alarm.start()
    _guarded.call = call
    try:
        yield call
    finally:
        _guarded.call = None
        alarm.cancel()
        alarm.join()
        call.close()


def _forget_environment() -> None:
    """A proxy or a .netrc of the server is none of the service's: the proxy would be dialled
    in place of the address that was checked."""
    begin = requests.Session.__init__

    def begin_alone(session: requests.Session) -> None:
        begin(session)
        if getattr(_guarded, "call", None):
            session.trust_env = False

    requests.Session.__init__ = begin_alone  # type: ignore[assignment, method-assign]


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith(WATCHED):
        return
    call: _Call | None = getattr(_guarded, "call", None)
    if call is None:
        return
    if event == "open":
        call.read(*arguments)
    elif event == "socket.connect":
        call.dial(*arguments)
    elif event in ("socket.sendto", "socket.sendmsg"):
        call.check(arguments[1])
    elif not event.startswith("socket."):
        call.refused = True
        call.refuse()
