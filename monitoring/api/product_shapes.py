"""What the endpoints of products take and answer, beside the product itself."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from common.drf.serializers import StrictSerializer
from monitoring.api.serializers import (
    Amount,
    BulkSerializer,
    ChangeSerializer,
    HistoryQuerySerializer,
    HistorySerializer,
    ProductSerializer,
)
from monitoring.comparing import Group
from monitoring.models import (
    Product,
    ProductImage,
    ProductMatch,
    ProductStatistics,
    StockStatus,
    Variant,
)
from monitoring.product_control import ACTIONS, MAX_ITEMS

VARIANT: dict[str, Any] = {"max_length": 255, "required": False, "default": "", "allow_blank": True}


class SeriesQuerySerializer(HistoryQuerySerializer):
    interval = serializers.ChoiceField(
        choices=["raw", "day", "week", "month"],
        default="raw",
        help_text="raw: every check. Else one item per day, week (from Monday) or month, in UTC.",
    )
    variant = serializers.CharField(
        help_text="The key of a variant; else the product itself.", **VARIANT
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kept = {name: attrs[name] for name in ("interval", "variant")}
        return super().validate(attrs) | kept


class ChartQuerySerializer(HistoryQuerySerializer):
    variant = serializers.CharField(
        help_text="The key of a variant; else the product itself.", **VARIANT
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return super().validate(attrs) | {"variant": attrs["variant"]}


class BucketSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    min_price = Amount(allow_null=True)
    max_price = Amount(allow_null=True)
    avg_price = Amount(allow_null=True)
    first_price = Amount(allow_null=True)
    last_price = Amount(allow_null=True)
    currency = serializers.CharField()
    stock_status = serializers.CharField(help_text="At the last check of the time.")
    checks = serializers.IntegerField()
    price_changes = serializers.IntegerField()
    stock_changes = serializers.IntegerField()
    out_of_stock_checks = serializers.IntegerField()


HistoryItemSerializer = PolymorphicProxySerializer(
    component_name="HistoryItem",
    serializers=[HistorySerializer, BucketSerializer],
    resource_type_field_name=None,
    many=True,
)


class ProductChangeSerializer(StrictSerializer):
    is_active = serializers.BooleanField(
        required=False, help_text="False: it is not crawled until it is true again."
    )
    category = serializers.CharField(max_length=500, required=False, allow_blank=True)
    gtin = serializers.RegexField(r"^(\d{8}|\d{12,14})?$", required=False, allow_blank=True)
    mpn = serializers.CharField(max_length=255, required=False, allow_blank=True)


class WhySerializer(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(
        choices=[
            "confirmed",
            "quarantined",
            "dismissed",
            "silent",
            "held",
            "failed",
            "unseen",
            "delisted",
        ]
    )
    summary = serializers.CharField(help_text="The verdict in a sentence.")
    rules = serializers.ListField(child=serializers.CharField(), help_text="Those in force.")
    baseline = serializers.DictField(help_text="What the client was last told.")
    change = ChangeSerializer(allow_null=True, help_text="The latest change.")
    check = HistorySerializer(allow_null=True, help_text="The latest check.")
    last_failure = serializers.DictField(
        allow_null=True, help_text="Of a look after the latest check; it changed nothing."
    )
    evidence = serializers.DictField()


class ProductBulkFilterSerializer(StrictSerializer):
    website = serializers.UUIDField(source="website_id", required=False)
    brand = serializers.CharField(source="brand__iexact", max_length=255, required=False)
    category = serializers.CharField(source="category__iexact", max_length=500, required=False)
    availability = serializers.ChoiceField(
        choices=StockStatus.choices, source="current_stock_status", required=False
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Name at least one field to filter by.")
        return attrs


class ProductBulkSerializer(BulkSerializer):
    action = serializers.ChoiceField(choices=list(ACTIONS))
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MAX_ITEMS, required=False
    )
    filter = ProductBulkFilterSerializer(  # type: ignore[assignment]
        required=False, help_text=f"The oldest first, {MAX_ITEMS} per call."
    )


class ProductBulkLineSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    result = serializers.ChoiceField(choices=["done", "unchanged", "refused", "not_found"])
    detail = serializers.CharField(help_text="Why, where nothing was done.")


class ProductBulkAnswerSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    done = serializers.IntegerField()
    items = ProductBulkLineSerializer(many=True)


class VariantSerializer(serializers.ModelSerializer[Variant]):
    price = Amount(allow_null=True)
    options = serializers.DictField(read_only=True)
    stock_status = serializers.CharField(read_only=True)

    class Meta:
        model = Variant
        fields = [
            "id",
            "key",
            "options",
            "sku",
            "gtin",
            "price",
            "currency",
            "stock_status",
            "last_seen_at",
        ]
        read_only_fields = fields


class ImageSerializer(serializers.ModelSerializer[ProductImage]):
    class Meta:
        model = ProductImage
        fields = ["id", "url", "position", "alt_text", "width", "height"]
        read_only_fields = fields


class StatisticsSerializer(serializers.ModelSerializer[ProductStatistics]):
    min_price = Amount(allow_null=True)
    max_price = Amount(allow_null=True)
    avg_price = Amount(allow_null=True)
    time_weighted_avg_price = Amount(
        allow_null=True, help_text="Each price counts as long as it stood."
    )

    class Meta:
        model = ProductStatistics
        fields = [
            "id",
            "month",
            "currency",
            "min_price",
            "max_price",
            "avg_price",
            "time_weighted_avg_price",
            "price_changes_count",
            "stock_changes_count",
            "stock_out_days",
            "total_snapshots",
        ]
        read_only_fields = fields


class MatchSerializer(serializers.ModelSerializer[ProductMatch]):
    left_id = serializers.UUIDField(read_only=True)
    right_id = serializers.UUIDField(read_only=True)

    class Meta:
        model = ProductMatch
        fields = ["id", "left_id", "right_id", "score", "reason", "status", "created_at"]
        read_only_fields = fields


class MatchChangeSerializer(StrictSerializer):
    status = serializers.ChoiceField(choices=["confirmed", "rejected"])

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError({"status": ["Say confirmed or rejected."]})
        return attrs


class CompareSerializer(StrictSerializer):
    product = serializers.UUIDField()
    propose = serializers.BooleanField(
        default=False, help_text="Also propose products whose names are alike."
    )


class GroupSerializer(serializers.Serializer[Any]):
    matched_by = serializers.ChoiceField(choices=["gtin", "brand_mpn", "confirmed"])
    offers = ProductSerializer(many=True, help_text="The cheapest first.")
    cheapest_id = serializers.UUIDField(allow_null=True)
    position = serializers.IntegerField(
        allow_null=True, help_text="Of the asked product among offers in its currency; 1: cheapest."
    )
    spread_pct = serializers.DecimalField(max_digits=14, decimal_places=2, allow_null=True)
    chart_url = serializers.CharField()
    proposed = MatchSerializer(
        many=True, help_text="Alike by name: the same once confirmed, never by themselves."
    )

    @classmethod
    def of(cls, product: Product, group: Group, proposed: list[ProductMatch]) -> Any:
        return cls(
            {
                "matched_by": group.matched_by,
                "offers": group.offers,
                "cheapest_id": group.cheapest.pk if group.cheapest else None,
                "position": group.position,
                "spread_pct": group.spread_pct,
                "chart_url": f"/api/v1/products/{product.pk}/group-chart.svg",
                "proposed": proposed,
            }
        ).data


class DismissSerializer(StrictSerializer):
    note = serializers.CharField(max_length=255, required=False, allow_blank=True)
