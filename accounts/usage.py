"""What a client uses of its limits; upper layers add their counts through settings."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string

from accounts.models import ApiKey, Client


def usage_of(client: Client) -> dict[str, int]:
    """``USAGE_COUNTERS`` maps a name to the dotted path of a function client → counts."""
    counts = {"api_keys": ApiKey.objects.for_client(client).live().count()}
    for path in getattr(settings, "USAGE_COUNTERS", {}).values():
        counts |= import_string(path)(client)
    return counts
