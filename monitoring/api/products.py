"""Products: found, changed, explained, drawn, compared; and what is below each of them."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from accounts.authentication import actor_of
from common.drf.views import ClientViewSet
from crawling.api.serializers import JobSerializer
from crawling.api.views import accepted
from monitoring import charts, comparing, explaining, product_control, reparsing, series
from monitoring.api import filters
from monitoring.api import product_shapes as more
from monitoring.api import serializers as shapes
from monitoring.api.imports import ProductImportQuery, ProductImports, WatchSerializer
from monitoring.api.reparsing import REPARSE, ReparseSerializer, compared
from monitoring.models import (
    Change,
    Product,
    ProductHistory,
    ProductImage,
    ProductMatch,
    ProductStatistics,
    Variant,
)

BULK = OpenApiExample(
    "Pause the products of a website, tried first",
    {
        "action": "pause",
        "filter": {"website": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d"},
        "dry_run": True,
    },
    request_only=True,
)
COMPARE = OpenApiExample(
    "One product in all shops",
    {"product": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d", "propose": True},
    request_only=True,
)
PAUSE = OpenApiExample("Rest", {"is_active": False}, request_only=True)
CONFIRM = OpenApiExample("The same product", {"status": "confirmed"}, request_only=True)
DISMISS = OpenApiExample("A mistake", {"note": "The shop was testing."}, request_only=True)
# Ten years of days.
MAX_BUCKETS = 3660
SVG = {(200, "image/svg+xml"): OpenApiResponse(OpenApiTypes.BINARY)}


class ProductViewSet(
    ProductImports, mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet
):
    tag = "Products"
    queryset = Product.objects.all()
    serializer_class = shapes.ProductSerializer
    serializer_classes = {
        "retrieve": shapes.ProductDetailSerializer,
        "create": WatchSerializer,
        "reparse": ReparseSerializer,
        "partial_update": more.ProductChangeSerializer,
        "bulk": more.ProductBulkSerializer,
        "compare": more.CompareSerializer,
    }
    query_serializers = {
        "import_list": ProductImportQuery,
        "chart": more.ChartQuerySerializer,
        "group_chart": shapes.HistoryQuerySerializer,
    }
    filterset_class = filters.ProductFilter
    ordering_fields = (
        "created_at",
        "updated_at",
        "name",
        "current_price",
        "last_changed_at",
        "last_crawled_at",
    )
    lookup_value_converter = "uuid"

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        return rows.defer("description", "attributes", "provenance") if self.is_list else rows

    @extend_schema(responses=shapes.ProductDetailSerializer, examples=[PAUSE])
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change a product: let it rest, or correct what identifies it."""
        product = product_control.update_product(
            self.get_object(), actor=actor_of(request), **self.valid_data()
        )
        return Response(shapes.ProductDetailSerializer(product).data)

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete a product with its history."""
        product_control.delete_product(self.get_object(), actor=actor_of(request))
        return Response(status=204)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(methods=["post"], detail=True)
    def crawl(self, request: Request, pk: uuid.UUID) -> Response:
        """Look at a product now."""
        return accepted(product_control.crawl_product(self.get_object(), actor=actor_of(request)))

    @REPARSE
    @action(methods=["post"], detail=True)
    def reparse(self, request: Request, pk: uuid.UUID) -> Response:
        """Read the stored pages of a product again, with the parser of today.

        `dry_run` shows for each of up to `limit` pages what was read then and what would be
        read now. Without it the newest page is read again, and corrects what is known.
        """
        product, wanted = self.get_object(), self.valid_data()
        if wanted["dry_run"]:
            return compared(reparsing.compare_product(product, limit=wanted["limit"]))
        return accepted(reparsing.reparse_product(product, actor=actor_of(request)))

    @extend_schema(responses=more.WhySerializer)
    @action(methods=["get"], detail=True)
    def why(self, request: Request, pk: uuid.UUID) -> Response:
        """Explain the latest verdict on a product, also silence."""
        product = get_object_or_404(self.get_queryset().select_related("website"), pk=pk)
        return Response(more.WhySerializer(explaining.explain(product)).data)

    @extend_schema(responses=SVG)
    @action(methods=["get"], detail=True, url_path="chart.svg")
    def chart(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        """Draw the price of a product: stepped, with bands where it was sold out."""
        product, span = self.get_object(), self.query
        variant = span["variant"]
        found = series.points(product.pk, span["from"], span["to"], variant_key=variant)
        lines = [charts.Line(product.name, found)]
        title = " ".join(filter(None, [str(product), variant, product.current_currency]))
        return _svg(charts.draw(title, lines, span["from"], span["to"]))

    @extend_schema(responses={200: more.ProductBulkAnswerSerializer}, examples=[BULK])
    @action(methods=["post"], detail=False)
    def bulk(self, request: Request) -> Response:
        """Pause, resume, crawl or delete many products; the answer has a line for each."""
        data = self.valid_data()
        visible = self.get_queryset()
        ids = data.get("ids") or product_control.ids_of(visible, **data["filter"])
        outcomes = product_control.act_on_many(
            data["action"], ids, visible, actor=actor_of(request), dry_run=data["dry_run"]
        )
        done = sum(outcome.result == "done" for outcome in outcomes)
        answer = {"dry_run": data["dry_run"], "done": done, "items": outcomes}
        return Response(more.ProductBulkAnswerSerializer(answer).data)

    @extend_schema(responses={200: more.GroupSerializer}, examples=[COMPARE])
    @action(methods=["post"], detail=False)
    def compare(self, request: Request) -> Response:
        """Compare a product with the same one in the client's other shops."""
        data = self.valid_data()
        visible = self.get_queryset().select_related("website")
        product = get_object_or_404(visible, pk=data["product"])
        proposed = comparing.propose(product, visible) if data["propose"] else []
        group = comparing.compare(product, visible)
        return Response(more.GroupSerializer.of(product, group, proposed))

    @extend_schema(responses=SVG)
    @action(methods=["get"], detail=True, url_path="group-chart.svg")
    def group_chart(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        """Draw the prices of a product in all shops, of its own currency."""
        visible = self.get_queryset().select_related("website")
        product, span = get_object_or_404(visible, pk=pk), self.query
        offers = comparing.compare(product, visible).offers[: len(charts.COLOURS)]
        lines = [
            charts.Line(one.website.name, series.points(one.pk, span["from"], span["to"]))
            for one in offers
            if one.current_currency == product.current_currency
        ]
        title = f"{product} {product.current_currency}"
        return _svg(charts.draw(title, lines, span["from"], span["to"]))


def _svg(text: str) -> HttpResponse:
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return HttpResponse(text, content_type="image/svg+xml", headers=headers)


class OfProduct(mixins.ListModelMixin, ClientViewSet):
    """Lists below ``/products/{id}``."""

    tag = "Products"

    @cached_property
    def product(self) -> Product:
        visible = super().owned(Product.objects.only("id"))
        found: Product = get_object_or_404(visible, pk=self.kwargs["product_id"])
        return found

    def owned(self, rows: Any) -> Any:
        return rows.filter(product_id=self.product.pk)


class HistoryViewSet(OfProduct):
    queryset = ProductHistory.objects.defer("raw_crawl_data")
    serializer_class = shapes.HistorySerializer
    query_serializers = {"list": more.SeriesQuerySerializer}
    filter_backends = ()
    ordering = ("-crawl_timestamp", "-id")

    def owned(self, rows: Any) -> Any:
        span = self.query
        # The time bounds keep PostgreSQL within the months that are asked for.
        return (
            super()
            .owned(rows)
            .filter(crawl_timestamp__gte=span["from"], crawl_timestamp__lte=span["to"])
            .filter(variant_key=span.get("variant", ""))
        )

    @extend_schema(responses=more.HistoryItemSerializer)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the checks of a product, the newest first, or its days, weeks or months.

        With an `interval` each item has `start` and the figures of that time; there are no
        further pages, as a year has 366 days at most: give `from` and `to`.
        """
        span = self.query
        if span.get("interval", "raw") == "raw":
            return super().list(request, *args, **kwargs)
        found = series.buckets(
            self.product.pk,
            span["interval"],
            span["from"],
            span["to"],
            variant_key=span["variant"],
            limit=MAX_BUCKETS,
        )
        items = more.BucketSerializer(found, many=True).data
        return Response({"items": items, "next_cursor": None, "has_more": False})


class ProductChangeViewSet(OfProduct):
    queryset = Change.objects.select_related("product")
    serializer_class = shapes.ChangeSerializer
    filterset_class = filters.ProductChangeFilter
    ordering = ("-occurred_at", "-id")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the changes of a product, the newest first."""
        return super().list(request, *args, **kwargs)


class VariantViewSet(OfProduct):
    queryset = Variant.objects.all()
    serializer_class = more.VariantSerializer
    filter_backends = ()
    ordering = ("key", "id")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the variants of a product; `history?variant=` has the series of each."""
        return super().list(request, *args, **kwargs)


class ImageViewSet(OfProduct):
    queryset = ProductImage.objects.all()
    serializer_class = more.ImageSerializer
    filter_backends = ()
    ordering = ("position", "id")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the images of a product."""
        return super().list(request, *args, **kwargs)


class StatisticsViewSet(OfProduct):
    queryset = ProductStatistics.objects.all()
    serializer_class = more.StatisticsSerializer
    filter_backends = ()
    ordering = ("-month", "-id")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the months of a product, as of last night; they outlive its history."""
        return super().list(request, *args, **kwargs)


class MatchViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Products"
    queryset = ProductMatch.objects.all()
    serializer_class = more.MatchSerializer
    serializer_classes = {"partial_update": more.MatchChangeSerializer}
    filter_backends = ()
    lookup_value_converter = "uuid"

    @extend_schema(responses=more.MatchSerializer, examples=[CONFIRM])
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Confirm or reject that two products are the same."""
        match = self.get_object()
        status = self.valid_data()["status"]
        match = comparing.decide(match, status, actor=actor_of(request))
        return Response(more.MatchSerializer(match).data)


class ChangeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Changes"
    queryset = Change.objects.select_related("product").defer(
        "product__description", "product__attributes"
    )
    serializer_class = shapes.ChangeSerializer
    filterset_class = filters.ChangeFilter
    ordering = ("-occurred_at", "-id")
    lookup_value_converter = "uuid"

    def get_serializer_class(self) -> Any:
        return more.DismissSerializer if self.action == "dismiss" else shapes.ChangeSerializer

    @extend_schema(responses=shapes.ChangeSerializer, examples=[DISMISS])
    @action(methods=["post"], detail=True)
    def dismiss(self, request: Request, pk: uuid.UUID) -> Response:
        """Put a change aside; one that is held is let go."""
        note = self.valid_data().get("note", "")
        change = product_control.dismiss(self.get_object(), actor=actor_of(request), note=note)
        return Response(shapes.ChangeSerializer(change).data)


router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("products", ProductViewSet, "product")
router.register("changes", ChangeViewSet, "change")
router.register("product-matches", MatchViewSet, "product-match")
BELOW = {
    "history": HistoryViewSet,
    "changes": ProductChangeViewSet,
    "variants": VariantViewSet,
    "images": ImageViewSet,
    "statistics": StatisticsViewSet,
}
urlpatterns = [
    *router.urls,
    *(
        path(
            f"products/<uuid:product_id>/{name}",
            view.as_view({"get": "list"}),
            name=f"product-{name}",
        )
        for name, view in BELOW.items()
    ),
]
