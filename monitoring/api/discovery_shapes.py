"""What discovery is asked for and what it shows."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from common.drf.serializers import StrictSerializer
from monitoring.models import FoundUrl
from monitoring.runs import SOURCES
from monitoring.url_patterns import MAX_CHARS, MAX_PATTERNS


class TestCrawlSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(help_text="The seed page that was tried.")
    final_url = serializers.CharField(help_text="Where it led.")
    http_status = serializers.IntegerField(allow_null=True)
    checked_at = serializers.DateTimeField()
    address = serializers.ChoiceField(choices=["allowed", "refused"])
    robots = serializers.ChoiceField(choices=["allowed", "forbidden"])
    product_found = serializers.BooleanField(
        help_text="Product data was found, on this page or elsewhere by the end of discovery."
    )
    method = serializers.CharField(help_text="How: `json-ld`, `opengraph` …; empty for not.")
    methods = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="Products by how they were found, once discovery is over.",
    )
    reason = serializers.CharField(help_text="What the page itself showed.")
    needs_javascript = serializers.BooleanField(
        allow_null=True, help_text="True: pages are built by scripts; null: not known."
    )
    platform = serializers.CharField(help_text="`shopify`, `woocommerce` …; empty: not known.")
    links = serializers.IntegerField(help_text="Links the page has into the shop.")
    error = serializers.CharField(help_text="Why the page could not be read; else empty.")
    finished_at = serializers.DateTimeField(required=False, help_text="End of the discovery.")


PATTERNS_HELP = "`*` stands for anything: `/outlet/*`."


class Patterns(serializers.ListField):
    child = serializers.CharField(max_length=MAX_CHARS)

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_PATTERNS, **options})


class AutoApproveSerializer(StrictSerializer):
    min_score = serializers.FloatField(min_value=0, max_value=1, required=False, default=0.9)
    include = Patterns(required=False, help_text=f"Only these URLs. {PATTERNS_HELP}")
    exclude = Patterns(required=False, help_text=f"Not these. {PATTERNS_HELP}")


class DiscoverySerializer(StrictSerializer):
    max_pages = serializers.IntegerField(
        min_value=1,
        max_value=100_000,
        required=False,
        help_text="Reads exactly so many pages, if there are that many; sitemaps count.",
    )
    sources = serializers.MultipleChoiceField(
        choices=SOURCES, allow_empty=False, required=False, help_text="Where to look; else all."
    )


class FoundUrlSerializer(serializers.ModelSerializer[FoundUrl]):
    website_id = serializers.UUIDField(read_only=True)

    class Meta:
        model = FoundUrl
        fields = [
            "id",
            "website_id",
            "url",
            "source",
            "depth",
            "score",
            "lastmod",
            "state",
            "reason",
            "job_id",
            "first_seen_at",
            "last_seen_at",
        ]
        read_only_fields = fields
