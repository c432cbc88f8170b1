from __future__ import annotations

import django_filters as filters  # type: ignore[import-untyped]

from accounts.models import ApiKey, AuditEntry, Client
from common.drf.filters import MomentFilter


class ClientFilter(filters.FilterSet):  # type: ignore[misc]
    q = filters.CharFilter("name", "icontains", label="Part of the name.")

    class Meta:
        model = Client
        fields = ["is_active", "subscription_tier"]


class ApiKeyFilter(filters.FilterSet):  # type: ignore[misc]
    revoked = filters.BooleanFilter("invalidated_at", "isnull", exclude=True)

    class Meta:
        model = ApiKey
        fields: list[str] = []


class AuditFilter(filters.FilterSet):  # type: ignore[misc]
    client = filters.UUIDFilter("client_id")
    actor_id = filters.UUIDFilter("actor_id")
    created_after = MomentFilter("created_at", "gte")
    created_before = MomentFilter("created_at", "lt")

    class Meta:
        model = AuditEntry
        fields = ["actor_kind", "verb", "object_type", "object_id", "request_id"]
