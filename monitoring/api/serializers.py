from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from common.drf.serializers import StrictSerializer
from monitoring import schedules
from monitoring.api.discovery_shapes import (
    PATTERNS_HELP,
    AutoApproveSerializer,
    Patterns,
    TestCrawlSerializer,
)
from monitoring.changes import plain
from monitoring.models import CURRENCY, LOCALE, Change, Product, ProductHistory, Website
from monitoring.registration import MAX_SEEDS
from monitoring.reviews import MAX_ITEMS
from monitoring.url_patterns import MAX_CHARS

URL_CHARS = 2048
HISTORY_DAYS = 90


class Amount(serializers.DecimalField):
    """A price as people write it; its currency stands beside it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_digits=14, decimal_places=4, read_only=True, **options)

    def to_representation(self, value: Decimal) -> str:
        return plain(value)


class WebsiteSerializer(serializers.ModelSerializer[Website]):
    client_id = serializers.UUIDField(read_only=True)
    crawl_frequency_minutes = serializers.IntegerField(read_only=True)
    price_change_threshold_abs = Amount(allow_null=True)
    crawl_profile_id = serializers.UUIDField(read_only=True, allow_null=True)
    seed_urls = serializers.ListField(child=serializers.CharField(), read_only=True)
    webhook_endpoint_url = serializers.CharField(read_only=True, allow_null=True)
    test_crawl = TestCrawlSerializer(
        read_only=True, allow_null=True, help_text="Null until the first seed page was tried."
    )
    auto_approve = AutoApproveSerializer(read_only=True, allow_null=True)
    banned_patterns = serializers.ListField(child=serializers.CharField(), read_only=True)
    schedule = serializers.SerializerMethodField(help_text="When it is crawled, in words.")
    next_run_at = serializers.SerializerMethodField(help_text="Null while it is not crawled.")

    class Meta:
        model = Website
        fields = [
            "id",
            "client_id",
            "name",
            "base_url",
            "seed_urls",
            "kind",
            "status",
            "crawl_frequency_minutes",
            "schedule",
            "next_run_at",
            "price_change_threshold_pct",
            "price_change_threshold_abs",
            "retention_days",
            "crawl_profile_id",
            "currency",
            "locale",
            "webhook_endpoint_url",
            "webhook_enabled",
            "discovery_max_pages",
            "auto_approve",
            "banned_patterns",
            "test_crawl",
            "approved_product_count",
            "last_successful_crawl_at",
            "last_crawl_status",
            "consecutive_failures",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_schedule(self, website: Website) -> str:
        return schedules.describe(website)

    def get_next_run_at(self, website: Website) -> dt.datetime | None:
        return schedules.next_run_at(website)


class RegisteredWebsiteSerializer(WebsiteSerializer):
    discovery_job_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="The job that looks for products now."
    )

    class Meta(WebsiteSerializer.Meta):
        fields = [*WebsiteSerializer.Meta.fields, "discovery_job_id"]
        read_only_fields = fields


class WebsiteChangeSerializer(StrictSerializer):
    name = serializers.CharField(max_length=255, required=False)
    crawl_frequency_minutes = serializers.ChoiceField(
        choices=Website.Frequency.values,
        required=False,
        help_text="360, 480, 720 or 1440; replaces a schedule of its own.",
    )
    price_change_threshold_pct = serializers.DecimalField(
        max_digits=5,
        decimal_places=2,
        min_value=Decimal("0.01"),
        max_value=Decimal(100),
        required=False,
    )
    price_change_threshold_abs = serializers.DecimalField(
        max_digits=14,
        decimal_places=4,
        min_value=Decimal("0.0001"),
        allow_null=True,
        required=False,
        help_text="Also tell about a difference of this amount, whatever it is in percent.",
    )
    retention_days = serializers.IntegerField(min_value=30, max_value=365, required=False)
    currency = serializers.RegexField(
        CURRENCY,
        required=False,
        allow_blank=True,
        help_text="For pages that leave it open: ISO 4217; empty: as the page and host suggest.",
    )
    locale = serializers.RegexField(
        LOCALE, required=False, allow_blank=True, max_length=16, help_text="Such as de-CH."
    )
    crawl_profile_id = serializers.UUIDField(
        allow_null=True,
        required=False,
        help_text="How its pages are asked for, from the next run on: one of /crawl-profiles.",
    )
    webhook_endpoint_url = serializers.CharField(
        max_length=URL_CHARS,
        allow_null=True,
        required=False,
        help_text="Hears about this website only; null removes it.",
    )
    webhook_enabled = serializers.BooleanField(
        required=False,
        help_text="False: the endpoint of this website rests; endpoints of the whole client "
        "still hear about it.",
    )
    discovery_max_pages = serializers.IntegerField(
        min_value=1,
        max_value=100_000,
        allow_null=True,
        required=False,
        help_text="Pages one discovery reads at most, sitemaps among them; null: what this "
        "installation allows, which is also the most.",
    )
    auto_approve = AutoApproveSerializer(
        allow_null=True,
        required=False,
        help_text="Candidates that are watched without anybody's approval; null: none.",
    )
    banned_patterns = Patterns(
        required=False,
        help_text=f"URLs that are neither read nor candidates. {PATTERNS_HELP}",
    )


class RegistrationSerializer(WebsiteChangeSerializer):
    base_url = serializers.CharField(max_length=URL_CHARS)
    seed_urls = serializers.ListField(
        child=serializers.CharField(max_length=URL_CHARS),
        min_length=1,
        max_length=MAX_SEEDS,
        required=False,
        help_text="Where discovery starts, on the host of base_url; else base_url itself.",
    )
    kind = serializers.ChoiceField(choices=Website.Kind.choices, required=False)


class ScheduleSerializer(serializers.Serializer[Any]):
    description = serializers.CharField(help_text="The schedule in words.")
    cron = serializers.CharField(allow_null=True, help_text="Null when it runs at an interval.")
    every_minutes = serializers.IntegerField(
        allow_null=True, help_text="Null unless it runs at an interval of whole minutes."
    )
    every_seconds = serializers.IntegerField(
        allow_null=True, help_text="Null unless it runs at an interval."
    )
    timezone = serializers.CharField()
    enabled = serializers.BooleanField(help_text="False while the website is not active.")
    next_run_at = serializers.DateTimeField(allow_null=True)
    last_run_at = serializers.DateTimeField(
        allow_null=True, help_text="Of the last run by schedule."
    )

    @classmethod
    def of(cls, website: Website) -> dict[str, Any]:
        task = website.periodic_task
        return cls(
            {
                "description": schedules.describe(website),
                "cron": schedules.cron_of(website),
                "every_minutes": schedules.every_minutes_of(website),
                "every_seconds": schedules.every_seconds_of(website),
                "timezone": schedules.zone_of(website),
                "enabled": task is not None and task.enabled,
                "next_run_at": schedules.next_run_at(website),
                "last_run_at": schedules.last_run_at(website),
            }
        ).data


class ScheduleInputSerializer(StrictSerializer):
    cron = serializers.CharField(
        max_length=600,
        required=False,
        help_text="Minute, hour, day of month, month, day of week: `0 */6 * * *`.",
    )
    every_minutes = serializers.IntegerField(min_value=1, max_value=31 * 24 * 60, required=False)
    every_seconds = serializers.IntegerField(
        min_value=schedules.SHORTEST_SECONDS, max_value=schedules.LONGEST_SECONDS, required=False
    )
    timezone = serializers.CharField(
        max_length=64, required=False, help_text="Of the cron line; else that of the client."
    )


class CandidateSerializer(serializers.ModelSerializer[Product]):
    website_id = serializers.UUIDField(read_only=True)
    duplicate_of = serializers.UUIDField(
        source="duplicate_of_id",
        read_only=True,
        allow_null=True,
        help_text="A product of the website that this one may be again.",
    )
    url = serializers.CharField(source="original_url", read_only=True)
    price = Amount(source="current_price", allow_null=True)
    list_price = Amount(allow_null=True)
    currency = serializers.CharField(source="current_currency", read_only=True)
    stock_status = serializers.CharField(source="current_stock_status", read_only=True)

    class Meta:
        model = Product
        fields = [
            "id",
            "website_id",
            "approval",
            "discovery_score",
            "discovery_reason",
            "extraction_method",
            "name",
            "url",
            "image_url",
            "sku",
            "gtin",
            "mpn",
            "brand",
            "category",
            "price",
            "list_price",
            "currency",
            "stock_status",
            "duplicate_of",
            "duplicate_reason",
            "discovered_at",
            "vanished_at",
            "last_crawled_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class ProductSerializer(CandidateSerializer):
    lowest_price = Amount(allow_null=True)
    highest_price = Amount(allow_null=True)
    unit_price = Amount(allow_null=True)

    class Meta(CandidateSerializer.Meta):
        fields = [
            *CandidateSerializer.Meta.fields,
            "stock_quantity",
            "unit_price",
            "rating",
            "review_count",
            "lowest_price",
            "highest_price",
            "is_active",
            "delisted_at",
            "last_changed_at",
        ]
        read_only_fields = fields


class ProductDetailSerializer(ProductSerializer):
    attributes = serializers.DictField(read_only=True)
    provenance = serializers.DictField(
        read_only=True, help_text="Where each field was read, as text and with confidence."
    )
    held_price = Amount(allow_null=True)

    class Meta(ProductSerializer.Meta):
        fields = [
            *ProductSerializer.Meta.fields,
            "description",
            "attributes",
            "normalized_url",
            "provenance",
            "held_price",
            "held_reason",
        ]
        read_only_fields = fields


class BulkFilterSerializer(StrictSerializer):
    website = serializers.UUIDField(required=False)
    score_min = serializers.FloatField(min_value=0, max_value=1, required=False)
    url_pattern = serializers.CharField(
        max_length=MAX_CHARS, required=False, help_text=PATTERNS_HELP
    )
    duplicates = serializers.BooleanField(
        required=False, help_text="False: no possible duplicates; true: only them."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Name a website, a score_min or a url_pattern.")
        return attrs


class BulkSerializer(StrictSerializer):
    action = serializers.ChoiceField(choices=["approve", "reject"])
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MAX_ITEMS, required=False
    )
    filter = BulkFilterSerializer(
        required=False, help_text=f"Pending candidates, the best first, {MAX_ITEMS} per call."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Say what would be, change nothing."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError({"ids": ["Give either ids or a filter."]})
        return attrs


class OutcomeSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    result = serializers.ChoiceField(
        choices=["approved", "rejected", "unchanged", "refused", "not_found"]
    )
    detail = serializers.CharField(help_text="Why, where nothing was done.")


class BulkAnswerSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    done = serializers.IntegerField(help_text="How many were approved or rejected.")
    items = OutcomeSerializer(many=True)


class HistorySerializer(serializers.ModelSerializer[ProductHistory]):
    price = Amount(allow_null=True)
    list_price = Amount(allow_null=True)

    class Meta:
        model = ProductHistory
        fields = [
            "id",
            "crawl_timestamp",
            "variant_key",
            "price",
            "list_price",
            "currency",
            "stock_status",
            "price_changed",
            "stock_changed",
            "is_doubted",
            "price_change_pct",
            "crawl_job_id",
        ]
        read_only_fields = fields


class HistoryQuerySerializer(serializers.Serializer[Any]):
    to = serializers.DateTimeField(required=False, help_text="Up to here; else now.")

    def get_fields(self) -> dict[str, Any]:
        # ``from`` is a word of Python, so it cannot be declared as the others.
        start = serializers.DateTimeField(
            required=False, help_text=f"From here; else {HISTORY_DAYS} days before `to`."
        )
        return {"from": start, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        end = attrs.get("to") or timezone.now()
        first = dt.datetime.min.replace(tzinfo=dt.UTC)
        start = attrs.get("from") or end - min(dt.timedelta(days=HISTORY_DAYS), end - first)
        if start > end:
            raise serializers.ValidationError({"from": ["Must not be later than `to`."]})
        return {"from": start, "to": end}


class ChangeSerializer(serializers.ModelSerializer[Change]):
    product_id = serializers.UUIDField(read_only=True)
    website_id = serializers.UUIDField(source="product.website_id", read_only=True)
    alert_rule_id = serializers.UUIDField(read_only=True, allow_null=True)
    product_name = serializers.CharField(source="product.name", read_only=True)
    product_url = serializers.CharField(source="product.original_url", read_only=True)

    class Meta:
        model = Change
        fields = [
            "id",
            "product_id",
            "website_id",
            "product_name",
            "product_url",
            "kind",
            "old",
            "new",
            "currency",
            "pct",
            "rule",
            "alert_rule_id",
            "variant_key",
            "status",
            "note",
            "campaign_id",
            "page_hash",
            "history_id",
            "occurred_at",
        ]
        read_only_fields = fields
