"""How an endpoint is treated that is away, slow, limited or asks for patience."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from typing import Any

import pytest
from aiohttp import web
from django.utils import timezone

from accounts.audit import SYSTEM
from notifications import endpoints
from notifications.claims import REST_AFTER, claim, has_due
from notifications.delivery import deliver_due
from notifications.models import Delivery, WebhookEndpoint
from notifications.results import record
from notifications.sending import Outcome, Parcel
from tests.factories.notifications import EndpointFactory
from tests.notifications.receiver import Got, Receiver, always, fine
from tests.notifications.sending_tools import make_due, names, tell

pytestmark = pytest.mark.django_db


def answer_all(parcels: list[Parcel], status: int, **more: Any) -> None:
    record([Outcome(p, timezone.now(), http_status=status, **more) for p in parcels])


def end_rest() -> None:
    WebhookEndpoint.objects.update(resting_until=timezone.now())


def make_away(endpoint: WebhookEndpoint, pending: int = 20) -> None:
    tell(endpoint.client, pending)
    answer_all(claim(limit=REST_AFTER), 500)


def test_an_endpoint_that_is_away_rests_and_spends_no_tries() -> None:
    endpoint = EndpointFactory.create()
    make_away(endpoint)
    assert not has_due()
    assert claim() == []
    end_rest()
    assert has_due()
    [probe] = claim()
    answer_all([probe], 500)
    assert not has_due()
    assert Delivery.objects.filter(attempt_number=0).count() == 20 - REST_AFTER - 1


def test_the_rest_grows_with_the_time_away_up_to_five_minutes() -> None:
    endpoint = EndpointFactory.create()
    make_away(endpoint)
    for away, rest in ((0, 5), (40, 40), (3600, 300)):
        since = timezone.now() - dt.timedelta(seconds=away)
        WebhookEndpoint.objects.update(failing_since=since, resting_until=timezone.now())
        answer_all(claim(), 500)
        endpoint.refresh_from_db()
        assert endpoint.resting_until
        left = (endpoint.resting_until - timezone.now()).total_seconds()
        assert rest - 2 <= left <= rest + 2


def test_the_first_answer_brings_everything_forward(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    make_away(endpoint)
    assert Delivery.objects.filter(status="retrying").count() == REST_AFTER
    end_rest()
    deliver_due()
    assert Delivery.objects.filter(status="success").count() == 20
    endpoint.refresh_from_db()
    assert (endpoint.failing_since, endpoint.failures_in_row) == (None, 0)


def test_no_delivery_is_locked_after_an_endpoint(django_assert_max_num_queries: Any) -> None:
    """Whoever redelivers locks them in this order: the other way round two would wait for ever."""
    endpoint = EndpointFactory.create()
    make_away(endpoint)
    end_rest()
    parcels = claim()
    with django_assert_max_num_queries(30) as queries:
        answer_all(parcels, 200)
    writes = [query["sql"] for query in queries if query["sql"].startswith(("UPDATE", "\nUPDATE"))]
    written = [sql.split()[1].strip('"').removeprefix("notifications_") for sql in writes]
    assert written[-1] == "webhookendpoint"
    assert set(written[:-1]) == {"delivery"}
    assert not Delivery.objects.filter(next_retry_at__gt=timezone.now()).exists()


def test_one_product_that_fails_delays_no_other(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    bad_thing = uuid.uuid4()
    [bad] = tell(endpoint.client, 1, bad_thing)

    async def answer(got: Got) -> web.Response:
        return await (always(500) if bad.hex.encode() in got.body else fine)(got)

    receiver.answer = answer
    for _ in range(7):
        deliver_due()
        make_due()
    assert Delivery.objects.get(event_id=bad).attempt_number == 7
    good = tell(endpoint.client, 30, uuid.uuid4())
    behind = tell(endpoint.client, 1, bad_thing)
    deliver_due()
    assert Delivery.objects.filter(event_id__in=good, status="success").count() == 30
    assert Delivery.objects.filter(event_id__in=behind, status="success").count() == 1


def test_who_asks_for_patience_is_left_alone_with_everything(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url)
    tell(endpoint.client, 3)
    [first] = claim(limit=1)
    answer_all([first], 503, retry_after="120")
    endpoint.refresh_from_db()
    assert endpoint.resting_until
    assert 110 < (endpoint.resting_until - timezone.now()).total_seconds() <= 120
    assert deliver_due() == 0
    assert receiver.got == []


def test_a_test_event_does_not_wait_for_the_end_of_a_rest(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(
        url=receiver.url, resting_until=timezone.now() + dt.timedelta(hours=1)
    )
    endpoints.send_test(endpoint, SYSTEM)
    assert deliver_due() == 1


def test_a_new_address_ends_the_rest() -> None:
    endpoint = EndpointFactory.create()
    make_away(endpoint)
    endpoints.update_endpoint(endpoint, url="https://93.184.216.34/new", actor=SYSTEM)
    assert has_due()
    assert len(claim()) > 1


def test_a_throttled_endpoint_gets_no_more_than_it_takes(receiver: Receiver) -> None:
    endpoint = EndpointFactory.create(url=receiver.url, throttle_per_second=10)
    tell(endpoint.client, 25)
    began = time.monotonic()
    assert deliver_due() == 25
    # Ten at once, ten a second later, five after another: the waits are at least two seconds.
    assert time.monotonic() - began >= 2
    assert len(set(names(receiver.got))) == 25


def test_a_throttle_holds_for_all_senders_together() -> None:
    endpoint = EndpointFactory.create(throttle_per_second=10)
    other = EndpointFactory.create()
    tell(endpoint.client, 30)
    tell(other.client, 30)
    taken = [parcel.target.id for parcel in claim() + claim()]
    assert taken.count(endpoint.pk) == 10
    assert taken.count(other.pk) == 30


def test_a_claim_is_not_filled_by_a_heap_that_cannot_be_sent() -> None:
    away, well = EndpointFactory.create(), EndpointFactory.create()
    make_away(away, pending=1500)
    tell(well.client, 20)
    make_due()
    end_rest()
    taken = [parcel.target.id for parcel in claim(limit=20)]
    assert taken.count(well.pk) >= 19
    assert taken.count(away.pk) <= 1
