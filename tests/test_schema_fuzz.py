"""What the contract says is what the API does, for input nobody thought of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from pytest_django import Settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.audit import SYSTEM
from accounts.models import Client
from common import guard, http
from crawling.models import CrawlProfile
from monitoring.exporting import order_export
from monitoring.models import AlertRule, ProductMatch
from notifications.endpoints import send_test
from tests.factories.accounts import ApiKeyFactory, ClientFactory, key_for
from tests.factories.crawling import DomainProxyFactory, TaskFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory, WebsiteFactory
from tests.factories.notifications import ChannelFactory, EndpointFactory
from tests.factories.static import static_root  # noqa: F401
from tests.test_openapi import SCHEMA

Case = schemathesis.Case[Any]
pytestmark = pytest.mark.django_db
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

contract = schemathesis.openapi.from_dict(SCHEMA)
contract.app = get_wsgi_application()
# The keys below are what is presented; no other is made up.
contract.config.generation.update(with_security_parameters=False)
# Other methods never reach a view.
contract.config.phases.coverage.unexpected_methods = set()


def unplugged(_address_info: object) -> NoReturn:
    raise ConnectionRefusedError


@pytest.fixture(autouse=True)
def no_network(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up hosts are public, and none of them can be reached."""
    settings.EGRESS_ALLOWED_NETWORKS = []
    for module in (http, guard):
        monkeypatch.setattr(module, "resolve_name", lambda host: ["93.184.215.14"])
    monkeypatch.setattr(http, "_open_socket", refuse)


def refuse(address_info: Any) -> NoReturn:
    raise ConnectionRefusedError


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """As Django's test client does: the end of a request is not the end of the transaction."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def client_row() -> Client:
    return ClientFactory.create()


@pytest.fixture
def known(client_row: Client) -> dict[str, Any]:
    """For each prefix of a path with an id, the id of something that is there."""
    website = WebsiteFactory.create(client=client_row, active=True)
    product = ProductFactory.create(website=website, approved=True)
    HistoryFactory.create(product=product)
    task = TaskFactory.create(job__client=client_row, job__website_id=website.pk)
    endpoint = EndpointFactory.create(client=client_row)
    delivery = send_test(endpoint, SYSTEM)
    proxy_id = DomainProxyFactory.create(domain=task.domain).proxy_id
    alike = [ProductFactory.create(website=website, approved=True) for _ in range(2)]
    left, right = sorted(alike, key=lambda one: one.pk)
    return {
        "alert-rules": AlertRule.objects.create(website=website, kind="any").pk,
        "exports": order_export(client_row, "history", "csv", {}).pk,
        "product-matches": ProductMatch.objects.create(left=left, right=right, score=0.9).pk,
        "api-keys": ApiKeyFactory.create(client=client_row).pk,
        "candidates": ProductFactory.create(website=website, pending=True).pk,
        "changes": ChangeFactory.create(product=product).pk,
        "channels": ChannelFactory.create(client=client_row).pk,
        "clients": ClientFactory.create().pk,
        "crawl-profiles": CrawlProfile.objects.create(client=client_row, name="Slow").pk,
        "dead-letters": TaskFactory.create(status="failed").pk,
        "deliveries": delivery.pk,
        "domains": task.domain.host,
        "events": delivery.event_id,
        "jobs": task.job_id,
        "parsers": "generic",
        "products": product.pk,
        "proxies": proxy_id,
        "proxy_id": proxy_id,
        "stored-pages": "0" * 64,
        "tasks": task.pk,
        "webhooks": delivery.endpoint_id,
        "websites": website.pk,
    }


@pytest.fixture(params=["client", "operator"])
def key(request: pytest.FixtureRequest, client_row: Client) -> str:
    return key_for(client_row if request.param == "client" else None)


@contract.parametrize()
@settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_a_documented_one(case: Case, key: str, known: dict[str, Any]) -> None:
    name_something_known(case, known)
    case.call_and_validate(headers={"Authorization": f"Bearer {key}"}, checks=CHECKS)


def name_something_known(case: Case, known: dict[str, Any]) -> None:
    """Instead of a well-formed id of nothing; ids that are nonsense stay."""
    assert case.meta is not None
    path = case.meta.components.get(ParameterLocation.PATH)
    if path is not None and path.mode.is_positive:
        group = case.path.split("/")[3]
        case.path_parameters = {
            name: str(known.get(name, known[group])) for name in case.path_parameters
        }
