"""Whether the embedded servers are needed, and keeping them up while they are."""

from __future__ import annotations

import sys

from django.conf import settings

from obsrv.embedded import EmbeddedError, Servers

# Commands that work without any server, or start them themselves and say so.
OFFLINE = {
    "check",
    "collectstatic",
    "bench",
    "compilemessages",
    "demo",
    "demo_shop",
    "doctor",
    "help",
    "makemessages",
    "makemigrations",
    "spectacular",
    "up",
    "version",
}


def start() -> Servers | None:
    """Start and hold the embedded servers, unless real ones are configured."""
    if not settings.EMBEDDED_NEEDED:
        return None
    servers = Servers(
        settings.EMBEDDED,
        postgres=settings.EMBEDDED_POSTGRES,
        valkey=settings.EMBEDDED_VALKEY,
    )
    servers.start()
    return servers


def start_for_command(command: list[str]) -> None:
    if not command or command[0] in OFFLINE or command[0].startswith("-"):
        return
    try:
        start()
    except EmbeddedError as error:
        sys.exit(f"Embedded services: {error}")
