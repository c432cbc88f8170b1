from __future__ import annotations

import django_filters as filters  # type: ignore[import-untyped]

from common.drf.filters import MomentFilter
from crawling.models import CrawlJob, CrawlTask


class JobFilter(filters.FilterSet):  # type: ignore[misc]
    website = filters.UUIDFilter("website_id")
    created_after = MomentFilter("created_at", "gte")

    class Meta:
        model = CrawlJob
        fields = ["kind", "status", "triggered_by"]


class TaskFilter(filters.FilterSet):  # type: ignore[misc]
    class Meta:
        model = CrawlTask
        fields = ["status", "error_category"]


class AnyTaskFilter(TaskFilter):
    job = filters.UUIDFilter("job_id")
    website = filters.UUIDFilter("website_id")
    domain = filters.CharFilter("domain__host", label="The host.")

    class Meta(TaskFilter.Meta):
        pass
