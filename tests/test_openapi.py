"""The contract: valid, complete, and the same 404 for another client's objects as for none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.test import Client as Browser
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from accounts.models import Client
from common.ids import uuid7
from crawling.models import CrawlJob, CrawlProfile, StoredPage
from crawling.pages import key_of
from monitoring.exporting import order_export
from monitoring.models import AlertRule, Change, Export, Product, ProductMatch, Website
from notifications.catalogue import TYPES
from tests.factories.accounts import ApiKeyFactory, ClientFactory, api_for
from tests.factories.monitoring import ProductFactory
from tests.factories.notifications import (
    ChannelFactory,
    DeliveryFactory,
    EndpointFactory,
    EventFactory,
)
from tests.factories.static import static_root  # noqa: F401

METHODS = {"get", "post", "put", "patch", "delete"}
SCHEMA: dict[str, Any] = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]


def make_website(client: Client) -> Website:
    base = "https://shop.example/"
    return Website.objects.create(client=client, name="Shop", base_url=base, base_url_hash="x")


def make_product(client: Client, approval: str) -> Product:
    url = "https://shop.example/p/1"
    return Product.objects.create(
        website=make_website(client),
        approval=approval,
        original_url=url,
        normalized_url=url,
        url_hash="x",
    )


def make_change(client: Client) -> Change:
    product = make_product(client, "approved")
    return Change.objects.create(
        id=uuid7(), product=product, kind="price_changed", rule="", occurred_at=timezone.now()
    )


def make_rule(client: Client) -> AlertRule:
    return AlertRule.objects.create(website=make_website(client), kind="any")


def make_export(client: Client) -> Export:
    return order_export(client, "products", "csv", {})


def make_match(client: Client) -> ProductMatch:
    website = make_website(client)
    left, right = sorted(
        (ProductFactory.create(website=website) for _ in range(2)), key=lambda one: one.pk
    )
    return ProductMatch.objects.create(left=left, right=right, score=0.9)


def make_job(client: Client) -> CrawlJob:
    return CrawlJob.objects.create(client=client, kind="urls", triggered_by="api")


def make_profile(client: Client) -> CrawlProfile:
    return CrawlProfile.objects.create(client=client, name="Gentle")


def make_page(client: Client) -> str:
    digest = uuid7().hex * 2
    product = make_product(client, "approved")
    Product.objects.filter(pk=product.pk).update(page_hash=digest)
    StoredPage.objects.create(
        content_hash=digest,
        storage_key=key_of(digest),
        size=1,
        compressed_size=1,
        first_seen_at=timezone.now(),
        last_seen_at=timezone.now(),
    )
    return digest


# Under each prefix: how to make an object of another client, or None where only operators
# may enter. A path that matches nothing here fails the test below.
TENANTS: dict[str, Callable[[Client], Any] | None] = {
    "/api/v1/api-keys/": lambda client: ApiKeyFactory.create(client=client).pk,
    "/api/v1/clients/": None,
    "/api/v1/webhooks/": lambda client: EndpointFactory.create(client=client).pk,
    "/api/v1/events/": lambda client: EventFactory.create(client=client).pk,
    "/api/v1/websites/": lambda client: make_website(client).pk,
    "/api/v1/candidates/": lambda client: make_product(client, "pending").pk,
    "/api/v1/products/": lambda client: make_product(client, "approved").pk,
    "/api/v1/alert-rules/": lambda client: make_rule(client).pk,
    "/api/v1/exports/": lambda client: make_export(client).pk,
    "/api/v1/product-matches/": lambda client: make_match(client).pk,
    "/api/v1/changes/": lambda client: make_change(client).pk,
    "/api/v1/stored-pages/": make_page,
    "/api/v1/jobs/": lambda client: make_job(client).pk,
    "/api/v1/tasks/": None,
    "/api/v1/dead-letters/": None,
    "/api/v1/domains/": None,
    "/api/v1/parsers/": None,
    "/api/v1/proxies/": None,
    "/api/v1/crawl-profiles/": lambda client: make_profile(client).pk,
    "/api/v1/channels/": lambda client: ChannelFactory.create(client=client).pk,
    "/api/v1/deliveries/": lambda client: DeliveryFactory.create(endpoint__client=client).pk,
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            if method in METHODS:
                yield method, path, operation


WITH_ID = [(method, path) for method, path, _ in operations() if "{" in path]


def prefix_of(path: str) -> str:
    return path[: path.index("{")]


def test_the_document_is_valid_openapi_3_1() -> None:
    assert SCHEMA["openapi"].startswith("3.1")
    validate_schema(SCHEMA)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [pytest.param(*one, id=f"{one[0]} {one[1]}") for one in operations()],
)
def test_every_operation_is_described(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation.get("summary")
    assert operation["tags"]
    problems = {status for status in operation["responses"] if status >= "400"}
    assert {"400", "500", "503"} <= problems
    for status in problems:
        assert "application/problem+json" in operation["responses"][status]["content"]
    if path != "/api/v1/schema":
        assert {"bearer": []} in operation["security"]
        assert {"apiKey": []} in operation["security"]
        assert {"401", "403", "429"} <= problems


def test_every_list_is_paged() -> None:
    for _, path, operation in operations():
        name = operation["operationId"]
        if name.endswith("_list"):
            given = {parameter["name"] for parameter in operation["parameters"]}
            assert {"limit", "cursor", "count"} <= given, path


def test_every_path_with_an_id_is_classified() -> None:
    unknown = {path for _, path in WITH_ID if prefix_of(path) not in TENANTS}
    assert not unknown, f"say in TENANTS how to make another client's object for {unknown}"


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path"), WITH_ID, ids=[" ".join(one) for one in WITH_ID])
def test_another_clients_object_looks_like_none(method: str, path: str) -> None:
    api = api_for(ClientFactory.create())
    make = TENANTS[prefix_of(path)]
    theirs = make(ClientFactory.create()) if make else uuid7()

    def ask(pk: Any) -> tuple[int, dict[str, Any]]:
        answer = getattr(api, method)(re.sub(r"\{\w+\}", str(pk), path))
        return answer.status_code, answer.json() | {"request_id": ""}

    answer = ask(theirs)
    assert answer[0] == (404 if make else 403)
    assert answer == ask(uuid7())
    assert ask("nonsense")[0] in (answer[0], 404)


def test_every_event_type_is_a_webhook_with_a_schema_and_an_example() -> None:
    assert set(SCHEMA["webhooks"]) == set(TYPES)
    for name, item in SCHEMA["webhooks"].items():
        content = item["post"]["requestBody"]["content"]["application/json"]
        assert content["schema"]["properties"]["type"] == {"const": name}
        jsonschema.validate(content["example"], content["schema"])


@pytest.mark.parametrize("page", ["/api/docs", "/api/docs?script=", "/api/redoc", "/api/v1/schema"])
def test_the_pages_ask_no_other_host(client: Browser, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 200
    text = answer.content.decode()
    hosts = set(re.findall(r"(?:src|href)=[\"'](?:https?:)?//([^/\"']+)", text))
    assert hosts <= {"testserver"}


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/api/docs", "/api/redoc"])
def test_the_pages_need_no_inline_script(client: Browser, page: str) -> None:
    text = client.get(page).content.decode()
    assert re.findall(r"<script(?![^>]*src=)", text) == []
    for script in re.findall(r"<script src=[\"'](/static/[^\"']+)", text):
        answer = client.get(script)
        answer.close()
        assert answer.status_code == 200
