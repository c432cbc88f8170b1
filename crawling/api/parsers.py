from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.drf.permissions import HasScope, OperatorOnly, scope_admin
from common.drf.views import ApiView
from extraction.sites import PARSERS


class ParserSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    description = serializers.CharField()


class ParserPageSerializer(serializers.Serializer[Any]):
    items = ParserSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


class ParsersView(ApiView):
    tag = "Parsers"
    permission_classes = [HasScope, OperatorOnly]
    required_scopes = scope_admin

    @extend_schema(responses=ParserPageSerializer, operation_id="parsers_list_all")
    def get(self, request: Request) -> Response:
        """List the parsers that read pages."""
        page = {"items": list(PARSERS.values()), "next_cursor": None, "has_more": False}
        return Response(ParserPageSerializer(page).data)


class ParserView(ApiView):
    tag = "Parsers"
    permission_classes = [HasScope, OperatorOnly]
    required_scopes = scope_admin

    @extend_schema(responses=ParserSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Show a parser."""
        if name not in PARSERS:
            raise Http404
        return Response(ParserSerializer(PARSERS[name]).data)


urlpatterns = [
    path("parsers", ParsersView.as_view(), name="parsers"),
    path("parsers/<str:name>", ParserView.as_view(), name="parser"),
]
