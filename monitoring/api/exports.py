"""Files of products, history and changes."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common import sheets
from common.drf.serializers import StrictSerializer
from common.drf.views import ClientViewSet
from common.streaming import streamed
from monitoring import exporting
from monitoring.models import Export

HISTORY = OpenApiExample(
    "A quarter of a shop's history as a spreadsheet",
    {
        "kind": "history",
        "format": "xlsx",
        "filter": {
            "website": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d",
            "from": "2026-07-01T00:00:00Z",
            "to": "2026-09-30T23:59:59Z",
        },
    },
    request_only=True,
)
PRODUCTS = OpenApiExample("All products", {"kind": "products", "format": "csv"}, request_only=True)


class ExportFilterSerializer(StrictSerializer):
    website = serializers.UUIDField(required=False)
    product = serializers.UUIDField(required=False)
    to = serializers.DateTimeField(required=False)

    def get_fields(self) -> dict[str, Any]:
        # ``from`` is a word of Python, so it cannot be declared as the others.
        start = serializers.DateTimeField(
            required=False,
            help_text=f"Of history and changes; history else begins {exporting.HISTORY_DAYS} days ago.",
        )
        return {"from": start, **super().get_fields()}


class ExportInputSerializer(StrictSerializer):
    kind = serializers.ChoiceField(choices=Export.Kind.choices)
    format = serializers.ChoiceField(choices=Export.Format.choices)
    filter = ExportFilterSerializer(required=False)


class ExportSerializer(serializers.ModelSerializer[Export]):
    filter = serializers.DictField(read_only=True)
    file_url = serializers.SerializerMethodField(help_text="Where the file is written for you.")

    class Meta:
        model = Export
        fields = ["id", "kind", "format", "filter", "file_url", "created_at", "expires_at"]
        read_only_fields = fields

    def get_file_url(self, export: Export) -> str:
        return f"/api/v1/exports/{export.pk}/file"


class ExportViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Exports"
    queryset = Export.objects.all()
    serializer_class = ExportSerializer
    serializer_classes = {"create": ExportInputSerializer}
    filter_backends = ()
    # It changes nothing that is watched.
    required_scopes = {"create": "read"}

    @extend_schema(responses={201: ExportSerializer}, examples=[PRODUCTS, HISTORY])
    def create(self, request: Request) -> Response:
        """Order a file; its data is read when it is downloaded."""
        data = self.valid_data()
        export = exporting.order_export(
            self.client, data["kind"], data["format"], data.get("filter") or {}
        )
        location = {"Location": f"/api/v1/exports/{export.pk}"}
        return Response(ExportSerializer(export).data, status=201, headers=location)

    @extend_schema(
        responses={
            (200, media): OpenApiResponse(OpenApiTypes.BINARY)
            for media in sorted({kind.split(";")[0] for kind in sheets.TYPES.values()})
        }
    )
    def file(self, request: Request, pk: uuid.UUID) -> StreamingHttpResponse:
        """Download the file of an export, written while it is sent."""
        export = self.get_object()
        kind = sheets.TYPES[export.format]
        answer = streamed(request._request, exporting.stream(export), content_type=kind)
        answer["Content-Disposition"] = f'attachment; filename="{export}"'
        return answer


urlpatterns = [
    path("exports", ExportViewSet.as_view({"get": "list", "post": "create"}), name="exports"),
    path("exports/<uuid:pk>", ExportViewSet.as_view({"get": "retrieve"}), name="export"),
    path("exports/<uuid:pk>/file", ExportViewSet.as_view({"get": "file"}), name="export-file"),
]
