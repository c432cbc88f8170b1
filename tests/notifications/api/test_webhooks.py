from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import AuditEntry, Client
from notifications.models import Delivery, WebhookEndpoint
from tests.factories.accounts import api_for
from tests.factories.monitoring import WebsiteFactory
from tests.factories.notifications import DeliveryFactory, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://93.184.216.34/hooks"
PATH = "/api/v1/webhooks"


def test_creating_shows_the_secret_once(api: Any, client: Client) -> None:
    answer = api.post(PATH, {"url": URL, "events": ["product.*"], "description": "shop"})
    assert answer.status_code == 201, answer.json()
    made = answer.json()
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.client, endpoint.url, endpoint.events) == (client, URL, ["product.*"])
    assert made["secret"] == endpoint.secret_current
    shown = api.get(f"{PATH}/{made['id']}")
    assert shown.status_code == 200
    assert shown.json() == {name: value for name, value in made.items() if name != "secret"}
    assert "whsec_" not in api.get(PATH).content.decode()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"url": "https://127.0.0.1/"}, 403, "URL_BLOCKED"),
        ({"url": "https://169.254.169.254/latest/meta-data"}, 403, "URL_BLOCKED"),
        ({"url": "http://93.184.216.34/"}, 400, "URL_INVALID"),
        ({"url": "nonsense"}, 400, "URL_INVALID"),
        ({}, 400, "VALIDATION_ERROR"),
        ({"url": ["x"]}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "events": []}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "events": ["prodcut.*"]}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "events": "*"}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "timeout_seconds": 31}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "secret": "whsec_mine"}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "website_id": str(uuid.UUID(int=1))}, 400, "VALIDATION_ERROR"),
        ({"url": URL, "description": "\0"}, 400, "VALIDATION_ERROR"),
    ],
    ids=str,
)
def test_bad_input_is_refused_and_nothing_stored(
    api: Any, body: dict[str, Any], status: int, code: str
) -> None:
    answer = api.post(PATH, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not WebhookEndpoint.objects.exists()
    assert not AuditEntry.objects.filter(verb="create").exists()


def test_changing_and_switching_on_again(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client, disabled=True)
    answer = api.patch(f"{PATH}/{endpoint.pk}", {"is_active": True, "events": ["website.*"]})
    assert answer.status_code == 200
    assert answer.json()["is_active"] is True
    assert answer.json()["disabled_reason"] == ""
    assert answer.json()["events"] == ["website.*"]


def test_a_change_to_a_private_address_is_refused(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client)
    answer = api.patch(f"{PATH}/{endpoint.pk}", {"url": "https://10.0.0.1/", "is_active": False})
    assert (answer.status_code, answer.json()["code"]) == (403, "URL_BLOCKED")
    endpoint.refresh_from_db()
    assert endpoint.is_active


def test_deleting(api: Any, client: Client) -> None:
    row = DeliveryFactory.create(endpoint__client=client)
    assert api.delete(f"{PATH}/{row.endpoint_id}").status_code == 204
    assert not WebhookEndpoint.objects.exists()
    assert api.delete(f"{PATH}/{row.endpoint_id}").status_code == 404


def test_a_test_event_is_accepted_as_a_delivery(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client)
    answer = api.post(f"{PATH}/{endpoint.pk}/test")
    assert answer.status_code == 202
    made = answer.json()
    assert (made["event_type"], made["status"]) == ("webhook.test", "pending")
    assert Delivery.objects.get().pk == uuid.UUID(made["id"])


def test_a_disabled_endpoint_cannot_be_tested(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client, disabled=True)
    answer = api.post(f"{PATH}/{endpoint.pk}/test")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")


def test_rotating_shows_the_new_secret_once(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client)
    answer = api.post(f"{PATH}/{endpoint.pk}/rotate-secret", {"grace_seconds": 60})
    endpoint.refresh_from_db()
    assert answer.json() == {"secret": endpoint.secret_current, "grace_seconds": 60}
    assert api.post(f"{PATH}/{endpoint.pk}/rotate-secret").json()["grace_seconds"] == 3600


def test_too_long_a_grace_is_refused(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client)
    answer = api.post(f"{PATH}/{endpoint.pk}/rotate-secret", {"grace_seconds": 86401})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("get", ""),
        ("patch", ""),
        ("delete", ""),
        ("post", "/test"),
        ("post", "/rotate-secret"),
        ("post", "/recover"),
    ],
)
def test_another_client_finds_nothing(
    stranger: Any, client: Client, method: str, suffix: str
) -> None:
    endpoint = EndpointFactory.create(client=client)
    answer = getattr(stranger, method)(f"{PATH}/{endpoint.pk}{suffix}", {})
    unknown = getattr(stranger, method)(f"{PATH}/{uuid.uuid4()}{suffix}", {})
    assert answer.status_code == unknown.status_code == 404
    assert stranger.get(PATH).json()["items"] == []
    endpoint.refresh_from_db()
    assert endpoint.secret_current == ""


def test_a_key_is_needed_and_reading_is_not_writing(client: Client) -> None:
    assert APIClient().get(PATH).status_code == 401
    reader = api_for(client, ["read"])
    assert reader.get(PATH).status_code == 200
    assert reader.post(PATH, {"url": URL}).status_code == 403


def test_an_operator_names_the_client(client: Client) -> None:
    operator = api_for(None)
    assert operator.post(PATH, {"url": URL}).status_code == 400
    assert operator.post(f"{PATH}?client={client.pk}", {"url": URL}).status_code == 201
    assert len(operator.get(PATH).json()["items"]) == 1


def test_a_list_needs_the_same_queries_however_long(
    api: Any, client: Client, django_assert_max_num_queries: Any
) -> None:
    EndpointFactory.create_batch(10, client=client)
    api.get(PATH)
    with django_assert_max_num_queries(3):
        assert len(api.get(PATH).json()["items"]) == 10


def test_an_endpoint_may_hear_one_website_only_and_share_the_clients_secret(
    api: Any, client: Client
) -> None:
    website = WebsiteFactory.create(client=client)
    body = {"url": URL, "website_id": str(website.pk), "own_secret": False}
    made = api.post(PATH, body).json()
    assert (made["website_id"], made["has_own_secret"]) == (str(website.pk), False)
    assert made["secret"] == ""
    assert api.post(PATH, body).status_code == 409


def test_another_clients_website_is_none(api: Any) -> None:
    theirs = WebsiteFactory.create()
    for pk in (theirs.pk, uuid.uuid4()):
        answer = api.post(PATH, {"url": URL, "website_id": str(pk)})
        assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_ERROR")
    assert not WebhookEndpoint.objects.exists()


def test_a_throttle_can_be_set_and_taken_away(api: Any, client: Client) -> None:
    endpoint = EndpointFactory.create(client=client)
    path = f"{PATH}/{endpoint.pk}"
    assert api.patch(path, {"throttle_per_second": 5}).json()["throttle_per_second"] == 5
    assert api.patch(path, {"throttle_per_second": None}).json()["throttle_per_second"] is None
    for wrong in (0, 1001, "fast"):
        assert api.patch(path, {"throttle_per_second": wrong}).status_code == 400


def test_recovering_a_range(api: Any, client: Client) -> None:
    row = DeliveryFactory.create(endpoint__client=client, status="exhausted", attempt_number=8)
    path = f"{PATH}/{row.endpoint_id}/recover"
    answer = api.post(path, {"since": (timezone.now() - dt.timedelta(days=30)).isoformat()})
    assert (answer.status_code, answer.json()) == (202, {"deliveries": 1})
    wrong_times = ("yesterday", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z")
    for wrong in ({}, *({"since": since} for since in wrong_times)):
        assert api.post(path, wrong).status_code == 400
