"""Does a receiver do what a receiver must? Good, stale, wrongly signed, doubled and rotated
deliveries are sent to it, and each of its answers is judged."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

import orjson

from accounts.webhook_secrets import new_secret
from common.errors import Refused
from common.http import Egress, FetchFailed, Policy
from notifications.catalogue import TYPES
from notifications.sending import USER_AGENT, request_headers
from notifications.signing import signature_header, standard_headers

TIMEOUT_SECONDS = 15
STALE_SECONDS = 3600
EVENT = TYPES["webhook.test"]
# The operator names the receiver on the command line, and it is mostly one of their own.
ANYWHERE = Policy(allowed_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")), any_port=True)
Status = int | str


@dataclass(frozen=True)
class Probe:
    """One delivery and whether a careful receiver takes it."""

    name: str
    body: bytes
    headers: dict[str, str]
    accept: bool = False


@dataclass(frozen=True)
class Grade:
    name: str
    passed: bool
    expected: str
    answered: Status


def probes(secret: str) -> list[Probe]:
    event_id = f"evt_{uuid.uuid4().hex}"
    body = _body(event_id)
    now, other = int(time.time()), new_secret()
    good = _headers(event_id, body, [secret], now)
    unsigned = {
        name: text
        for name, text in good.items()
        if "signature" not in name.lower() and name != "webhook-timestamp"
    }
    # In the order of a life: what must be refused first, or a receiver that drops what it
    # has seen would refuse it for the wrong reason, or take it for a double.
    return [
        Probe("wrong secret", body, _headers(event_id, body, [other], now)),
        Probe("changed body", body.replace(b"{", b"{ ", 1), good),
        Probe("no signature", body, unsigned),
        Probe("stale", body, _headers(event_id, body, [secret], now - STALE_SECONDS)),
        Probe("from the future", body, _headers(event_id, body, [secret], now + STALE_SECONDS)),
        Probe("good", body, good, accept=True),
        Probe("duplicate", body, good, accept=True),
        _rotated(secret, other, now),
    ]


def _rotated(secret: str, other: str, now: int) -> Probe:
    event_id = f"evt_{uuid.uuid4().hex}"
    body = _body(event_id)
    headers = _headers(event_id, body, [other, secret], now)
    return Probe("rotated: the known secret signs second", body, headers, accept=True)


async def examine(url: str, secret: str) -> list[Grade]:
    async with Egress(ANYWHERE, user_agent=USER_AGENT) as egress:
        return [_grade(probe, await _send(egress, url, probe)) for probe in probes(secret)]


def _grade(probe: Probe, answered: Status) -> Grade:
    taken = isinstance(answered, int) and 200 <= answered < 300
    # Silence is no refusal: a receiver must say what it thinks.
    passed = taken if probe.accept else isinstance(answered, int) and 400 <= answered < 500
    return Grade(probe.name, passed, "2xx" if probe.accept else "4xx", answered)


async def _send(egress: Egress, url: str, probe: Probe) -> Status:
    try:
        answer = await egress.request(
            "POST",
            url,
            headers=probe.headers,
            body=probe.body,
            max_redirects=0,
            timeout_seconds=TIMEOUT_SECONDS,
            first_bytes=0,
        )
    except (FetchFailed, Refused) as error:
        return str(error)
    return answer.status


def _body(event_id: str) -> bytes:
    return orjson.dumps({**EVENT.example, "id": event_id})


def _headers(event_id: str, body: bytes, secrets: Sequence[str], at: int) -> dict[str, str]:
    return {
        **request_headers(
            delivery_id=uuid.uuid4(),
            event_id=event_id,
            event_type=EVENT.name,
            signature=signature_header(body, secrets=secrets, timestamp=at),
        ),
        **standard_headers(event_id, body, secrets, at),
    }
