"""The shapes of reading stored pages again: what is asked, and what would differ."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from common.drf.serializers import StrictSerializer
from crawling.api.serializers import JobSerializer
from monitoring.reparsing import MOST_PAGES, Comparison


class ReparseSerializer(StrictSerializer):
    dry_run = serializers.BooleanField(default=False, help_text="Show the differences only.")
    limit = serializers.IntegerField(
        min_value=1,
        max_value=MOST_PAGES,
        default=20,
        help_text="How many pages a dry run reads.",
    )


class ReadSerializer(serializers.Serializer[Any]):
    price = serializers.CharField(allow_null=True)
    list_price = serializers.CharField(allow_null=True)
    currency = serializers.CharField()
    stock_status = serializers.CharField()


class DifferenceSerializer(serializers.Serializer[Any]):
    product_id = serializers.UUIDField()
    name = serializers.CharField()
    crawl_timestamp = serializers.DateTimeField(help_text="When the page came.")
    page_hash = serializers.CharField()
    parser_version = serializers.CharField(help_text="The parser that read it then.")
    old = ReadSerializer()
    new = ReadSerializer(allow_null=True, help_text="Null where no product is read any more.")
    why = serializers.CharField()
    changed = serializers.ListField(child=serializers.CharField())


class ComparisonSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=True)
    parser_version = serializers.CharField(help_text="The parser of today.")
    pages = serializers.IntegerField()
    differing = serializers.IntegerField()
    items = DifferenceSerializer(many=True)


REPARSE = extend_schema(
    request=ReparseSerializer,
    responses={200: ComparisonSerializer, 202: JobSerializer},
    examples=[
        OpenApiExample("What would differ", {"dry_run": True, "limit": 10}, request_only=True)
    ],
)


def compared(comparison: Comparison) -> Response:
    return Response(ComparisonSerializer(comparison).data)
