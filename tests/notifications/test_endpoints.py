from __future__ import annotations

import datetime as dt
import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import Conflict, Invalid, InvalidState, LimitReached, UrlBlocked, UrlInvalid
from notifications import endpoints, redelivery
from notifications.models import Delivery, Event, WebhookEndpoint
from tests.factories.accounts import ClientFactory
from tests.factories.notifications import DeliveryFactory, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://93.184.216.34/hooks"


def test_a_new_endpoint_hears_everything_and_has_a_secret_of_its_own() -> None:
    client = ClientFactory.create()
    endpoint = endpoints.create_endpoint(client, url=URL, actor=SYSTEM)
    endpoint.refresh_from_db()
    assert endpoint.events == ["*"]
    assert endpoints.live_secrets(endpoint) == [endpoint.secret_current]
    assert endpoint.secret_current.startswith("whsec_")
    entry = AuditEntry.objects.get(object_id=str(endpoint.pk))
    assert (entry.verb, entry.client_id) == ("create", client.pk)
    assert "whsec_" not in str(entry.after)


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://93.184.216.34/hooks", UrlInvalid),
        ("https://127.0.0.1/hooks", UrlBlocked),
        ("https://169.254.169.254/latest", UrlBlocked),
        ("https://[::1]/", UrlBlocked),
        ("https://localhost/", UrlBlocked),
        ("ftp://93.184.216.34/", UrlInvalid),
        ("not a url", UrlInvalid),
        ("https://93.184.216.34/" + "a" * 2048, UrlInvalid),
    ],
)
def test_an_address_nobody_may_be_sent_to_is_refused(url: str, refusal: type[Exception]) -> None:
    endpoint = EndpointFactory.create()
    with pytest.raises(refusal):
        endpoints.create_endpoint(endpoint.client, url=url, actor=SYSTEM)
    with pytest.raises(refusal):
        endpoints.update_endpoint(endpoint, url=url, actor=SYSTEM)
    with pytest.raises(refusal):
        endpoints.checked_url(url)
    assert WebhookEndpoint.objects.get().url == endpoint.url
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("events", [[], ["prodcut.*"], ["*", "nothing"]])
def test_events_that_cannot_happen_are_refused(events: list[str]) -> None:
    with pytest.raises(Invalid):
        endpoints.create_endpoint(ClientFactory.create(), url=URL, events=events, actor=SYSTEM)


def test_a_client_has_a_limited_number_of_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    endpoint = EndpointFactory.create()
    EndpointFactory.create(client=endpoint.client, website_id=uuid.uuid4())
    with pytest.raises(LimitReached):
        endpoints.create_endpoint(endpoint.client, url=URL, actor=SYSTEM)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_endpoints_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    client = ClientFactory.create()
    together = Barrier(4)

    def create(_number: int) -> bool:
        together.wait(timeout=30)
        try:
            endpoints.create_endpoint(client, url=URL, actor=SYSTEM)
        except LimitReached:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(4))) == [False, False, False, True]


def test_switching_on_again_forgets_why_it_was_off() -> None:
    endpoint = EndpointFactory.create(disabled=True, failing_since=timezone.now())
    endpoint = endpoints.update_endpoint(endpoint, is_active=True, actor=SYSTEM)
    endpoint.refresh_from_db()
    assert (endpoint.is_active, endpoint.disabled_reason) == (True, "")
    assert endpoint.failing_since is None
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after) == ({"is_active": False}, {"is_active": True})


def test_a_change_that_changes_nothing_leaves_no_entry() -> None:
    endpoints.update_endpoint(EndpointFactory.create(), is_active=True, actor=SYSTEM)
    assert not AuditEntry.objects.exists()


def test_deleting_takes_the_deliveries_along_and_keeps_the_event() -> None:
    row = DeliveryFactory.create()
    row.attempts.create(number=1, attempted_at=timezone.now(), signature_header="t=1")
    endpoints.delete_endpoint(row.endpoint, actor=SYSTEM)
    assert not WebhookEndpoint.objects.exists()
    assert not Delivery.objects.exists()
    assert Event.objects.count() == 1
    assert AuditEntry.objects.get().verb == "delete"


def test_a_website_has_one_endpoint_that_follows_its_address() -> None:
    client, website = ClientFactory.create(), uuid.uuid4()
    made = endpoints.set_website_endpoint(client, website, URL, SYSTEM)
    assert made is not None
    assert endpoints.live_secrets(made) == client.live_webhook_secrets()
    same = endpoints.set_website_endpoint(client, website, URL, SYSTEM)
    moved = endpoints.set_website_endpoint(client, website, URL + "/2", SYSTEM)
    assert made == same == moved
    assert endpoints.website_endpoint_urls([website, uuid.uuid4()]) == {website: URL + "/2"}
    assert endpoints.set_website_endpoint(client, website, None, SYSTEM) is None
    assert endpoints.website_endpoint_urls([website]) == {}


def test_two_endpoints_for_one_website_are_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = EndpointFactory.create(website_id=uuid.uuid4())
    twin = EndpointFactory.build(client=endpoint.client, website_id=endpoint.website_id)
    with pytest.raises(Conflict):
        endpoints._insert(twin, SYSTEM)


def test_a_rotation_keeps_what_signed_until_now_for_its_grace() -> None:
    endpoint = EndpointFactory.create()
    first = endpoints.rotate_secret(endpoint, 60, SYSTEM)
    endpoint.refresh_from_db()
    assert endpoints.live_secrets(endpoint) == [first, endpoint.client.webhook_secret_current]
    second = endpoints.rotate_secret(endpoint, 60, SYSTEM)
    endpoint.refresh_from_db()
    assert endpoints.live_secrets(endpoint) == [second, first]
    endpoint.secret_rotation_expires_at = timezone.now() - dt.timedelta(seconds=1)
    assert endpoints.live_secrets(endpoint) == [second]
    assert not any("whsec_" in str(e.after) + str(e.before) for e in AuditEntry.objects.all())


@pytest.mark.parametrize("seconds", [-1, 86_401])
def test_the_grace_is_at_most_a_day(seconds: int) -> None:
    with pytest.raises(Invalid):
        endpoints.rotate_secret(EndpointFactory.create(), seconds, SYSTEM)


def test_a_test_event_goes_to_the_one_endpoint_whatever_it_listens_to() -> None:
    endpoint = EndpointFactory.create(events=["website.failed"], website_id=uuid.uuid4())
    EndpointFactory.create(client=endpoint.client)
    delivery = endpoints.send_test(endpoint, SYSTEM)
    assert Delivery.objects.get() == delivery
    assert (delivery.endpoint, delivery.event.type) == (endpoint, "webhook.test")


def test_nothing_is_sent_by_hand_to_a_disabled_endpoint() -> None:
    row = DeliveryFactory.create(endpoint__disabled=True, status="exhausted")
    with pytest.raises(InvalidState):
        endpoints.send_test(row.endpoint, SYSTEM)
    with pytest.raises(InvalidState):
        redelivery.redeliver(row, SYSTEM)


def test_redelivering_makes_it_due_again() -> None:
    row = DeliveryFactory.create(status="exhausted", attempt_number=8)
    again = redelivery.redeliver(row, SYSTEM)
    assert (again.status, again.attempt_number) == ("pending", 8)
    assert AuditEntry.objects.get().before == {"status": "exhausted"}


def test_what_is_being_sent_cannot_be_redelivered() -> None:
    row = DeliveryFactory.create(leased_until=timezone.now() + dt.timedelta(seconds=30))
    with pytest.raises(InvalidState):
        redelivery.redeliver(row, SYSTEM)


def test_http_is_allowed_where_the_operator_says_so(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_HTTP = True
    endpoint = endpoints.create_endpoint(
        ClientFactory.create(), url="http://93.184.216.34/hooks", actor=SYSTEM
    )
    assert endpoint.url.startswith("http://")
