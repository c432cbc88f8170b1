"""What the parts of Obsrv publish fits what the catalogue promises."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest
from django.db import transaction

from accounts.audit import SYSTEM
from common.ids import uuid7
from monitoring.runs import website_event
from notifications import endpoints
from notifications.catalogue import TYPES
from notifications.events import BODY_BYTES, EventDraft, publish
from notifications.models import Event
from tests.factories.accounts import ClientFactory
from tests.factories.monitoring import WebsiteFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db


def check(event: Event) -> None:
    jsonschema.validate(orjson.loads(event.body), TYPES[event.type].schema)


@pytest.mark.parametrize("kind", ["website.activated", "website.paused", "website.failed"])
def test_news_of_websites_fits(kind: str) -> None:
    website = WebsiteFactory.create(active=True)
    with transaction.atomic():
        publish([website_event(website, kind, cause=uuid7())])
    check(Event.objects.get())


def test_news_of_endpoints_fits() -> None:
    endpoint = EndpointFactory.create()
    endpoints.send_test(endpoint, SYSTEM)
    endpoints.disable_endpoint(endpoint.pk, reason="The receiver answered 410 Gone.")
    assert Event.objects.count() == 2
    for event in Event.objects.all():
        check(event)


def test_a_body_stays_below_twenty_kilobytes_whatever_a_shop_writes() -> None:
    kind = TYPES["product.approved"]
    data = {"object": {**kind.data["object"], "name": "ß" * 30_000, "tags": ["x" * 9_000] * 4}}
    draft = EventDraft(
        client_id=ClientFactory.create().pk,
        type=kind.name,
        cause=uuid7(),
        data=data,
        occurred_at=WebsiteFactory.create().created_at,
    )
    with transaction.atomic():
        publish([draft])
    event = Event.objects.get()
    assert len(event.body.encode()) < BODY_BYTES
    check(event)


def test_a_long_list_is_cut_before_what_names_its_members() -> None:
    kind = TYPES["website.campaign"]
    member = {**kind.data["members"][0], "id": str(uuid7()), "name": "漢" * 120}
    draft = EventDraft(
        client_id=ClientFactory.create().pk,
        type=kind.name,
        cause=uuid7(),
        data={**kind.data, "members": [member] * 50},
        occurred_at=WebsiteFactory.create().created_at,
    )
    with transaction.atomic():
        publish([draft])
    event = Event.objects.get()
    assert len(event.body.encode()) < BODY_BYTES
    members = orjson.loads(event.body)["data"]["members"]
    assert members
    assert members == [member] * len(members)
