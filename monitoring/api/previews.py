"""Looking before asking: what a page would be read as, what a URL is, what a parser does."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.drf.permissions import HasScope, OperatorOnly, scope_admin
from common.drf.serializers import StrictSerializer
from common.drf.views import ApiView, ClientViewSet
from extraction.items import Method, PageKind
from extraction.sites import PARSERS
from monitoring import inspection, previews
from monitoring.models import CURRENCY, LOCALE, Product

LONGEST_HTML = 5_000_000
UTF8 = "text/html; charset=utf-8"
OUTCOMES = ["product", "no_product", "not_fetched"]
SOURCES = [method.value for method in Method]
ROBOTS = ["allowed", "forbidden", "unknown", "ignored"]
BY_URL = OpenApiExample(
    "A page of a shop", {"url": "https://shop.example.com/p/lamp-42"}, request_only=True
)
BY_HTML = OpenApiExample(
    "A page you have",
    {
        "url": "https://shop.example.com/p/lamp-42",
        "html": "<html><h1>Lamp</h1><span class=price>19,90 €</span><button>Buy</button></html>",
        "currency": "EUR",
        "locale": "de-DE",
    },
    request_only=True,
)
INSPECT = OpenApiExample(
    "A link from a newsletter",
    {"url": "https://Shop.example.com/p/lamp-42?utm_source=news#top"},
    request_only=True,
)


class PageSerializer(StrictSerializer):
    url = serializers.CharField(max_length=2048, help_text="Fetched, unless html is given.")
    html = serializers.CharField(
        max_length=LONGEST_HTML,
        required=False,
        trim_whitespace=False,
        help_text="The page itself; then nothing is fetched.",
    )
    currency = serializers.RegexField(
        CURRENCY, required=False, help_text="ISO 4217, for pages that leave it open."
    )
    locale = serializers.RegexField(LOCALE, required=False, help_text="Such as de-CH.")


class PreviewInputSerializer(PageSerializer):
    parser_name = serializers.ChoiceField(
        choices=sorted(PARSERS), required=False, help_text="Instead of the domain's own."
    )


class PreviewFetchSerializer(serializers.Serializer[Any]):
    robots = serializers.ChoiceField(choices=ROBOTS)
    status = serializers.IntegerField(allow_null=True)
    elapsed_ms = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField()
    content_type = serializers.CharField()
    error_category = serializers.CharField(help_text="Empty where the page came.")
    error = serializers.CharField()


class PreviewFieldSerializer(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="Decimals are strings.")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=["", *SOURCES],
        help_text="Empty where it follows from other values.",
    )
    raw = serializers.CharField(help_text="The text it was read from.")
    confidence = serializers.FloatField(allow_null=True)
    place = serializers.CharField(help_text="Where it stood: a selector or a path in the data.")


class PreviewLostSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.JSONField()
    source = serializers.ChoiceField(choices=SOURCES)  # type: ignore[assignment]
    raw = serializers.CharField()
    reason = serializers.CharField()
    score = serializers.FloatField(allow_null=True)


class PreviewSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(help_text="Where the page came from, after redirects.")
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    why = serializers.CharField()
    method = serializers.CharField(help_text="The source that named the product.")
    confidence = serializers.FloatField(allow_null=True)
    page_kind = serializers.ChoiceField(
        choices=["", "product", *(kind.value for kind in PageKind)],
        help_text="What the page is, where it could be read.",
    )
    js_needed = serializers.ChoiceField(choices=["yes", "no", "unknown"])
    parser = serializers.CharField()
    parser_version = serializers.CharField()
    fields = serializers.DictField(child=PreviewFieldSerializer())  # type: ignore[assignment]
    lost = PreviewLostSerializer(many=True, help_text="Values that were not taken, and why.")
    variants = serializers.ListField(child=serializers.JSONField())
    fetch = PreviewFetchSerializer(allow_null=True, help_text="Null for html that was sent.")


class InspectInputSerializer(StrictSerializer):
    url = serializers.CharField(max_length=2048)


class InspectionSerializer(serializers.Serializer[Any]):
    url = serializers.CharField()
    normalized_url = serializers.CharField(help_text="Equal for URLs that mean the same page.")
    url_hash = serializers.CharField(help_text="SHA-256 of the normal form.")
    host = serializers.CharField()
    product_id = serializers.CharField(help_text="The id the URL carries; empty without one.")
    address = serializers.ChoiceField(choices=["ok", "blocked"])
    robots = serializers.ChoiceField(
        choices=ROBOTS, help_text="By the copy that is kept; unknown before the first crawl."
    )
    domain = serializers.ChoiceField(choices=["active", "blocked", "circuit_open", "unknown"])
    duplicate_of = serializers.UUIDField(
        allow_null=True, help_text="Your product with the same normal form."
    )
    duplicate_approval = serializers.CharField()


def answer(data: dict[str, Any]) -> Response:
    given = dict(data)
    url, html = given.pop("url"), given.pop("html", None)
    if html is None:
        found = previews.preview_url(url, **given)
    else:
        body = html.encode("utf-8", "replace")
        found = previews.preview_html(body, url, content_type=UTF8, **given)
    return Response(previews.as_json(found))


class PreviewView(ApiView):
    tag = "Preview"
    required_scopes = {"POST": "read"}

    @extend_schema(
        request=PreviewInputSerializer,
        responses={200: PreviewSerializer},
        examples=[BY_URL, BY_HTML],
    )
    def post(self, request: Request) -> Response:
        """Read one page as a crawl would, and say why.

        Nothing is stored. A page that is fetched counts against the pace of its shop:
        robots.txt, gaps and the circuit hold as for any crawl.
        """
        return answer(_valid(PreviewInputSerializer, request))


class InspectViewSet(ClientViewSet):
    tag = "Discovery"
    queryset = Product.objects.none()
    filter_backends = ()
    required_scopes = {"inspect": "read"}

    @extend_schema(
        request=InspectInputSerializer, responses={200: InspectionSerializer}, examples=[INSPECT]
    )
    def inspect(self, request: Request) -> Response:
        """Say what a URL is, without asking its shop."""
        data = _valid(InspectInputSerializer, request)
        found = inspection.inspect_url(data["url"], client=self.client)
        return Response(InspectionSerializer(found).data)


class RuleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    selector = serializers.CharField()
    attribute = serializers.CharField()
    means = serializers.CharField()
    pattern = serializers.CharField()


class ParserSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    description = serializers.CharField()


class ParserDetailSerializer(ParserSerializer):
    rules = RuleSerializer(many=True, help_text="Where it looks before it reads as any shop.")


class ParserPageSerializer(serializers.Serializer[Any]):
    items = ParserSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


class ParserDoor(ApiView):
    tag = "Parsers"
    permission_classes = [HasScope, OperatorOnly]
    required_scopes = scope_admin


class ParsersView(ParserDoor):
    @extend_schema(responses=ParserPageSerializer, operation_id="parsers_list_all")
    def get(self, request: Request) -> Response:
        """List the parsers that read pages."""
        page = {"items": list(PARSERS.values()), "next_cursor": None, "has_more": False}
        return Response(ParserPageSerializer(page).data)


class ParserView(ParserDoor):
    @extend_schema(responses=ParserDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Show a parser with its rules."""
        _check_known(name)
        return Response(ParserDetailSerializer(PARSERS[name]).data)


class ParserTestView(ParserDoor):
    @extend_schema(
        request=PageSerializer, responses={200: PreviewSerializer}, examples=[BY_URL, BY_HTML]
    )
    def post(self, request: Request, name: str) -> Response:
        """Read one page with this parser; nothing is stored."""
        _check_known(name)
        return answer(_valid(PageSerializer, request) | {"parser_name": name})


def _check_known(name: str) -> None:
    if name not in PARSERS:
        raise Http404


def _valid(serializer_class: type[StrictSerializer], request: Request) -> dict[str, Any]:
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


urlpatterns = [
    path("preview", PreviewView.as_view(), name="preview"),
    path("urls/inspect", InspectViewSet.as_view({"post": "inspect"}), name="url-inspect"),
    path("parsers", ParsersView.as_view(), name="parsers"),
    path("parsers/<str:name>", ParserView.as_view(), name="parser"),
    path("parsers/<str:name>/test", ParserTestView.as_view(), name="parser-test"),
]
