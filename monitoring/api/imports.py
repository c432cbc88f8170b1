"""Lists over the API: websites to register, product pages to watch; tried first, then done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf.rendering import StrictJsonParser
from common.drf.serializers import StrictSerializer
from common.errors import Invalid
from monitoring import watching
from monitoring.api.serializers import URL_CHARS, ProductSerializer, RegistrationSerializer
from monitoring.imports import MAX_WEBSITES, Row, import_websites, read_csv
from monitoring.registration import Registration
from monitoring.watching import MAX_LINES, Line

WEBSITES_JSON = OpenApiExample(
    "Two shops",
    {
        "items": [
            {"base_url": "https://shop.example.com/", "name": "Example Shop"},
            {"base_url": "https://other.example.com/", "crawl_frequency_minutes": 360},
        ]
    },
    request_only=True,
    media_type="application/json",
)
WEBSITES_CSV = OpenApiExample(
    "Two shops as CSV",
    "base_url,name,seed_urls\nhttps://shop.example.com/,Example Shop,https://shop.example.com/sale\n"
    "https://other.example.com/,Other Shop,\n",
    request_only=True,
    media_type="text/csv",
)
PRODUCTS_JSON = OpenApiExample(
    "Two pages",
    {
        "items": [
            {"url": "https://shop.example.com/products/desk-lamp"},
            {"url": "https://shop.example.com/products/wall-clock"},
        ]
    },
    request_only=True,
    media_type="application/json",
)
PRODUCTS_CSV = OpenApiExample(
    "Two pages as CSV",
    "url\nhttps://shop.example.com/products/desk-lamp\nhttps://shop.example.com/products/wall-clock\n",
    request_only=True,
    media_type="text/csv",
)
WATCH = OpenApiExample(
    "A product page of a registered shop",
    {"url": "https://shop.example.com/products/desk-lamp"},
    request_only=True,
)


class CsvBody(dict[str, str]):
    """A body that came as CSV: its ``text``."""


class CsvParser(BaseParser):
    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> CsvBody:
        try:
            return CsvBody(text=stream.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ParseError("The list is not UTF-8: save it as CSV in UTF-8.") from error


class ImportQuery(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(
        default=True, help_text="True, the default: say what would be, change nothing."
    )


class ProductImportQuery(ImportQuery):
    website = serializers.UUIDField(
        required=False, help_text="Else the one website on the host of each page."
    )
    approve = serializers.BooleanField(
        default=True, help_text="False: the pages become candidates."
    )


class WebsiteListSerializer(StrictSerializer):
    items = RegistrationSerializer(  # type: ignore[call-arg]
        many=True, min_length=1, max_length=MAX_WEBSITES
    )


class WatchSerializer(StrictSerializer):
    url = serializers.CharField(max_length=URL_CHARS)
    website = serializers.UUIDField(
        required=False, help_text="Only needed where several websites are on its host."
    )


class ProductUrlSerializer(StrictSerializer):
    url = serializers.CharField(max_length=URL_CHARS)


class ProductListSerializer(StrictSerializer):
    items = ProductUrlSerializer(  # type: ignore[call-arg]
        many=True, min_length=1, max_length=MAX_LINES
    )


class LineSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(help_text="From 1, without the head line of CSV.")
    url = serializers.CharField()
    result = serializers.ChoiceField(
        choices=["registered", "watched", "candidate", "known", "unchanged", "refused"]
    )
    id = serializers.UUIDField(allow_null=True, help_text="Null where nothing was made.")
    detail = serializers.CharField(help_text="What is wrong with a line that is refused.")


class ImportAnswerSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    done = serializers.IntegerField(help_text="Lines that were taken, or would be.")
    refused = serializers.IntegerField()
    items = LineSerializer(many=True)


def _rows(body: Any, *, column: str) -> list[Row]:
    """The lines of a body, whatever it came as; each is judged alone later."""
    if isinstance(body, CsvBody):
        return list(read_csv(body["text"], required=column))
    if not isinstance(body, dict) or set(body) != {"items"} or not isinstance(body["items"], list):
        raise Invalid('Send {"items": [...]} as JSON, or CSV as text/csv.', attr="items")
    rows = body["items"]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise Invalid("Must be a list of objects, one at least.", attr="items")
    return rows


def _answer(lines: Sequence[Line], *, dry_run: bool) -> Response:
    refused = sum(one.result == "refused" for one in lines)
    done = sum(one.result in ("registered", "watched", "candidate") for one in lines)
    answer = {"dry_run": dry_run, "done": done, "refused": refused, "items": lines}
    if dry_run:
        # What was made is taken back: its id means nothing.
        made = [Line(one.line, one.url, one.result, None, one.detail) for one in lines]
        answer["items"] = made
    return Response(ImportAnswerSerializer(answer).data)


def registration_of(row: Row) -> Registration:
    """One line of a list as ``POST /websites`` takes it."""
    given = dict(row)
    if isinstance(given.get("seed_urls"), str):
        given["seed_urls"] = given["seed_urls"].replace("|", " ").split()
    serializer = RegistrationSerializer(data=given)
    if not serializer.is_valid():
        name, detail = _first_error(serializer.errors)
        raise Invalid(detail, attr=name)
    return Registration(**serializer.validated_data)


def _first_error(errors: Any, path: str = "") -> tuple[str, str]:
    while isinstance(errors, dict | list) and errors:
        if isinstance(errors, dict):
            name, errors = next(iter(errors.items()))
            path = f"{path}.{name}".strip(".")
        else:
            errors = next((one for one in errors if one), errors[0])
    return path, str(errors)


def list_door(method: Callable[..., Response]) -> Any:
    # An action of its own for each: what it is described by is kept in the arguments.
    door = action(
        methods=["post"],
        detail=False,
        url_path="import",
        parser_classes=[StrictJsonParser, CsvParser],
    )
    return door(method)


class WebsiteImports:
    """``POST /websites/import``"""

    @extend_schema(
        request={"application/json": WebsiteListSerializer, "text/csv": OpenApiTypes.STR},
        responses={200: ImportAnswerSerializer},
        examples=[WEBSITES_JSON, WEBSITES_CSV],
    )
    @list_door
    def import_list(self, request: Request) -> Response:
        """Register many websites; tried only, unless `dry_run=false`.

        CSV has a head line with the names of the fields; `seed_urls` are separated by spaces.
        Each line is taken or refused alone, and the answer says why.
        """
        dry_run = self.query["dry_run"]  # type: ignore[attr-defined]
        rows = _rows(request.data, column="base_url")
        client = self.required_client  # type: ignore[attr-defined]
        lines = import_websites(
            client, rows, registration_of, actor=actor_of(request), dry_run=dry_run
        )
        return _answer(lines, dry_run=dry_run)


class ProductImports:
    """``POST /products`` and ``POST /products/import``"""

    @extend_schema(request=WatchSerializer, responses={201: ProductSerializer}, examples=[WATCH])
    def create(self, request: Request) -> Response:
        """Watch one product page of a registered website, without discovery."""
        data = self.valid_data()  # type: ignore[attr-defined]
        product = watching.watch(
            self.required_client,  # type: ignore[attr-defined]
            data["url"],
            website_id=data.get("website"),
            actor=actor_of(request),
        )
        body = ProductSerializer(product).data
        return Response(body, status=201, headers={"Location": f"/api/v1/products/{product.pk}"})

    @extend_schema(
        request={"application/json": ProductListSerializer, "text/csv": OpenApiTypes.STR},
        responses={200: ImportAnswerSerializer},
        examples=[PRODUCTS_JSON, PRODUCTS_CSV],
    )
    @list_door
    def import_list(self, request: Request) -> Response:
        """Watch many product pages; tried only, unless `dry_run=false`.

        CSV has a column `url`, or nothing but URLs. Each line is taken or refused alone.
        """
        query = self.query  # type: ignore[attr-defined]
        urls = [str(row.get("url", "")) for row in _rows(request.data, column="url")]
        lines = watching.import_urls(
            self.required_client,  # type: ignore[attr-defined]
            urls,
            website_id=query.get("website"),
            approve=query["approve"],
            dry_run=query["dry_run"],
            actor=actor_of(request),
        )
        return _answer(lines, dry_run=query["dry_run"])
