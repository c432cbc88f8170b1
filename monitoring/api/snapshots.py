"""What a product's pages looked like: its checks with their pages, and the pages themselves."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef
from django.http import Http404, HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.drf.views import ClientViewSet
from crawling.downloads import download
from crawling.models import StoredPage
from monitoring import evidence
from monitoring.api.products import OfProduct
from monitoring.api.serializers import HistoryQuerySerializer, HistorySerializer
from monitoring.models import ProductHistory

PATH = "/api/v1/stored-pages/{}"


class SnapshotSerializer(HistorySerializer):
    page_url = serializers.SerializerMethodField(
        help_text="Where the page itself can be had; null when it is kept no more."
    )

    class Meta(HistorySerializer.Meta):
        fields = [*HistorySerializer.Meta.fields, "page_hash", "parser_version", "page_url"]
        read_only_fields = fields

    def get_page_url(self, row: ProductHistory) -> str | None:
        return PATH.format(row.page_hash) if getattr(row, "is_stored", False) else None


class SnapshotViewSet(OfProduct):
    queryset = ProductHistory.objects.defer("raw_crawl_data")
    serializer_class = SnapshotSerializer
    query_serializers = {"list": HistoryQuerySerializer}
    filter_backends = ()
    ordering = ("-crawl_timestamp", "-id")

    def owned(self, rows: Any) -> Any:
        span = self.query
        times = {"crawl_timestamp__gte": span["from"], "crawl_timestamp__lte": span["to"]}
        return super().owned(rows).filter(**times)

    def get_queryset(self) -> Any:
        stored = StoredPage.objects.filter(content_hash=OuterRef("page_hash"))
        return super().get_queryset().annotate(is_stored=Exists(stored))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the checks of a product with the pages they were read from."""
        return super().list(request, *args, **kwargs)


class StoredPageViewSet(ClientViewSet):
    tag = "Products"
    queryset = StoredPage.objects.all()
    filter_backends = ()

    def owned(self, rows: Any) -> Any:
        client, content_hash = self.client, self.kwargs["content_hash"]
        if client is not None and not evidence.is_page_of(client.pk, content_hash):
            return rows.none()
        return rows

    @extend_schema(responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.BINARY)})
    def retrieve(self, request: Request, content_hash: str) -> HttpResponse:
        """Download a page as it was fetched."""
        stored = self.get_queryset().filter(content_hash=content_hash).first()
        if stored is None:
            raise Http404
        return download(stored)


urlpatterns = [
    path(
        "products/<uuid:product_id>/snapshots",
        SnapshotViewSet.as_view({"get": "list"}),
        name="product-snapshots",
    ),
    path(
        "stored-pages/<str:content_hash>",
        StoredPageViewSet.as_view({"get": "retrieve"}),
        name="stored-page",
    ),
]
