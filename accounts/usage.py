"""What clients use of their quotas; the layers above count it, and settings name them."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.conf import settings
from django.db.models import Count
from django.utils.module_loading import import_string

from accounts.models import ApiKey, Client

Usage = dict[str, int]


def usage_of(client: Client) -> Usage:
    return usages_of([client.pk])[client.pk]


def usages_of(client_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Usage]:
    """``USAGE_COUNTERS`` maps a name to the dotted path of a function: ids → counts of each."""
    live = ApiKey.objects.live().filter(client__in=client_ids).order_by()
    found = dict(live.values_list("client_id").annotate(Count("id")))
    usages: dict[uuid.UUID, Usage] = {pk: {"api_keys": found.get(pk, 0)} for pk in client_ids}
    for path in getattr(settings, "USAGE_COUNTERS", {}).values():
        for pk, counts in import_string(path)(client_ids).items():
            usages[pk] |= counts
    return usages
