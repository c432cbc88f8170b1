"""``Idempotency-Key`` on POST: the same request twice is done once and answered twice.

The first request inserts a row under a unique constraint; that insert is the lock. Its answer
is stored, encrypted, because it may hold a secret that is shown once.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from common import crypto
from common.errors import Refused
from common.models import IdempotentRequest

KEPT_FOR = dt.timedelta(hours=24)
# Longer than any request may take: whoever began it is gone.
STALE_AFTER = dt.timedelta(seconds=60)
STORED_HEADERS = ("Content-Type", "Location", "ETag", "Link")


class IdempotencyConflict(Refused):
    code = "IDEMPOTENCY_CONFLICT"


class InFlight(IdempotencyConflict):
    retry_after_seconds = 1


class Replay(Exception):
    """Not a failure: the stored answer is the answer."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True)
class Claim:
    """The right to do the work; ``claimed_at`` fences off whoever took it over."""

    row_id: int
    claimed_at: dt.datetime

    def finish(self, response: HttpResponse) -> None:
        own = IdempotentRequest.objects.filter(pk=self.row_id, created_at=self.claimed_at)
        if response.status_code >= 500 or response.streaming:
            own.delete()
            return
        own.update(
            status=response.status_code,
            headers={name: response[name] for name in STORED_HEADERS if name in response},
            body=crypto.encrypt(response.content.decode()) if response.content else "",
        )


def fingerprint(request: HttpRequest) -> str:
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    digest.update(request.body)
    return digest.hexdigest()


def key_of(request: HttpRequest) -> str | None:
    """The header, or None where it has no meaning."""
    key = request.headers.get("Idempotency-Key")
    if request.method != "POST" or key is None:
        return None
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
        raise ValidationError({"Idempotency-Key": ["Must be 1 to 255 printable ASCII characters."]})
    return key


def begin(owner: Any, key: str, mark: str) -> Claim:
    """Claim the key, or raise: :class:`Replay` when done, a conflict when taken."""
    row, made = IdempotentRequest.objects.get_or_create(
        owner=owner, key=key, defaults={"fingerprint": mark}
    )
    if made:
        return Claim(row.pk, row.created_at)
    if row.created_at < timezone.now() - KEPT_FOR:
        IdempotentRequest.objects.filter(pk=row.pk, created_at=row.created_at).delete()
        return begin(owner, key, mark)
    if row.fingerprint != mark:
        raise IdempotencyConflict(
            "This Idempotency-Key was used for another request: use a new one."
        )
    if row.status is None:
        return _take_over(row)
    raise Replay(_stored(row, row.status))


def _take_over(row: IdempotentRequest) -> Claim:
    now = timezone.now()
    unfinished = IdempotentRequest.objects.filter(
        pk=row.pk, status=None, created_at=row.created_at, created_at__lt=now - STALE_AFTER
    )
    if unfinished.update(created_at=now):
        return Claim(row.pk, now)
    raise InFlight("The first request with this Idempotency-Key is still being worked on.")


def _stored(row: IdempotentRequest, status: int) -> HttpResponse:
    body = crypto.decrypt(row.body) if row.body else ""
    headers = row.headers | {"Idempotency-Replayed": "true"}
    return HttpResponse(body, status=status, headers=headers)


def purge_idempotent(older_than: dt.timedelta = KEPT_FOR) -> int:
    """Forget answers nobody will ask for again; answers how many."""
    old = IdempotentRequest.objects.filter(created_at__lt=timezone.now() - older_than)
    return old.delete()[0]
