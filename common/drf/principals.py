"""What this layer must know about whoever asks; ``accounts`` provides it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, Protocol, cast

from rest_framework.request import Request

RANK = {"read": 1, "write": 2, "admin": 3}


class Key(Protocol):
    """``request.auth``."""

    pk: Any
    scopes: Any
    client_id: Any
    rate_limit_rpm: Any


class Principal(Protocol):
    """``request.user``."""

    key: Any
    owner_id: uuid.UUID

    def client_for(self, named: str | None) -> Any:
        """The client acted for: the key's own, or the one an operator names; else None."""


def key_of(request: Request) -> Key | None:
    return cast("Key | None", request.auth)


def allows(scopes: Collection[str], needed: str) -> bool:
    """read < write < admin."""
    return max((RANK[scope] for scope in scopes), default=0) >= RANK[needed]
