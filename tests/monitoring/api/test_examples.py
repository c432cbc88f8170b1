"""Every request that the OpenAPI document shows as an example works as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from accounts.models import Client
from monitoring.models import Website
from tests.factories.accounts import api_for
from tests.factories.monitoring import ProductFactory, WebsiteFactory
from tests.test_openapi import TENANTS, operations, prefix_of

pytestmark = pytest.mark.django_db
GROUPS = {"Websites", "Candidates", "Products", "Changes", "Exports"}
# What examples name: shops, one of which is registered before its pages, and a product.
SHOP = "http://shop.localhost:8601/"
NAMED = "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d"


def mine() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for method, path, operation in operations():
        if operation["tags"][0] in GROUPS and "requestBody" in operation:
            yield method, path, operation["requestBody"]["content"]


def examples() -> Iterator[Any]:
    for method, path, content in mine():
        for kind, media in content.items():
            for name, example in media.get("examples", {}).items():
                yield pytest.param(
                    method, path, kind, example["value"], id=f"{method} {path} {name}"
                )


def test_every_request_with_a_body_shows_one() -> None:
    silent = [
        f"{method} {path}"
        for method, path, content in mine()
        if not any(media.get("examples") for media in content.values())
    ]
    assert silent == []


@pytest.mark.parametrize(("method", "path", "kind", "value"), list(examples()))
def test_an_example_works_as_it_stands(
    client_row: Client, settings: Settings, method: str, path: str, kind: str, value: Any
) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    url = re.sub(r"\{\w+\}", str(make(client_row, path)), path)
    api = api_for(client_row, ["write"])
    answer = getattr(api, method)(url, here(text), content_type=kind)
    assert answer.status_code < 300, answer.content


def here(text: str) -> str:
    """Hosts of examples are nobody's: the same names on loopback."""
    return re.sub(r"https://(\w+)\.example\.com", r"http://\1.localhost:8601", text)


def make(client: Client, path: str) -> Any:
    """What the path names, and what the body does."""
    if path != "/api/v1/websites":
        shop = WebsiteFactory.create(client=client, base_url=SHOP, active=True)
        ProductFactory.create(pk=NAMED, website=shop, approved=True)
    if "{" not in path:
        return None
    owned = TENANTS[prefix_of(path)]
    assert owned is not None
    pk = owned(client)
    Website.objects.filter(client=client).update(status="active", seed_urls=[SHOP])
    return pk
