from __future__ import annotations

import datetime as dt
import threading
from typing import Any
from unittest.mock import patch

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts import keys
from accounts.models import ApiKey, Client
from common.drf import idempotency
from common.ids import uuid7
from common.models import IdempotentRequest
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.static import static_root  # noqa: F401

KEYS = "/api/v1/api-keys"
NEW = {"name": "shop", "scopes": ["read"]}


@pytest.fixture
def api(client_row: Client) -> Any:
    return api_for(client_row)


def post(api: Any, body: Any = NEW, key: str = "k-1", path: str = KEYS) -> Any:
    return api.post(path, body, headers={"idempotency-key": key})


def made() -> int:
    return ApiKey.objects.filter(name="shop").count()


def test_the_second_answer_is_the_first(api: Any) -> None:
    first, second = post(api), post(api)
    assert made() == 1
    assert (second.status_code, second.content) == (201, first.content)
    assert second["Location"] == first["Location"]
    assert second["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert second["RateLimit"]
    assert second["X-Request-ID"] != first["X-Request-ID"]


def test_a_stored_answer_does_not_lay_its_secret_open(api: Any) -> None:
    plaintext = post(api).json()["key"]
    assert plaintext not in str(IdempotentRequest.objects.values().get())


def test_another_body_is_a_conflict(api: Any) -> None:
    post(api)
    answer = post(api, NEW | {"name": "other"})
    assert answer.status_code == 409
    assert answer.json()["code"] == "IDEMPOTENCY_CONFLICT"


def test_another_client_may_use_the_same_key(api: Any) -> None:
    post(api)
    assert post(api_for(ClientFactory.create())).status_code == 201
    assert made() == 2


def test_two_keys_of_one_client_share_its_idempotency(api: Any, client_row: Client) -> None:
    first = post(api)
    assert post(api_for(client_row)).content == first.content


def test_refusals_are_kept_and_failures_are_not(api: Any) -> None:
    assert post(api, {"name": "shop"}).status_code == 400
    assert post(api, {"name": "shop"})["Idempotency-Replayed"] == "true"
    with patch.object(keys, "issue", side_effect=ZeroDivisionError):
        assert post(api, key="k-2").status_code == 500
    assert post(api, key="k-2").status_code == 201


def test_an_unfinished_request_is_in_flight_until_it_is_stale(api: Any) -> None:
    post(api)
    IdempotentRequest.objects.update(status=None)
    answer = post(api)
    assert answer.status_code == 409
    assert answer["Retry-After"] == "1"
    IdempotentRequest.objects.update(created_at=timezone.now() - dt.timedelta(seconds=61))
    assert post(api).status_code == 201
    assert made() == 2


def test_whoever_was_taken_over_stores_nothing(db: None) -> None:
    owner = uuid7()
    slow = idempotency.begin(owner, "k", "f")
    with time_machine.travel(timezone.now() + dt.timedelta(seconds=61)):
        fast = idempotency.begin(owner, "k", "f")
    from django.http import HttpResponse

    slow.finish(HttpResponse("slow"))
    assert IdempotentRequest.objects.get().status is None
    fast.finish(HttpResponse("fast"))
    with pytest.raises(idempotency.Replay) as replay:
        idempotency.begin(owner, "k", "f")
    assert replay.value.response.content == b"fast"


def test_a_day_later_the_key_is_free_again(api: Any) -> None:
    post(api)
    IdempotentRequest.objects.update(created_at=timezone.now() - dt.timedelta(hours=25))
    assert post(api, NEW | {"scopes": ["write"]}).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "schl\xfcssel", "a\tb"])
def test_a_bad_key_is_400(api: Any, key: str) -> None:
    answer = post(api, key=key)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "Idempotency-Key"


def test_old_answers_are_purged(api: Any) -> None:
    post(api)
    assert idempotency.purge_idempotent() == 0
    assert idempotency.purge_idempotent(dt.timedelta(0)) == 1


@pytest.mark.django_db(transaction=True)
def test_many_at_once_do_the_work_once() -> None:
    client = ClientFactory.create()
    callers = [api_for(client) for _ in range(6)]
    start = threading.Barrier(len(callers))
    statuses: list[int] = []

    def call(api: Any) -> None:
        start.wait()
        statuses.append(post(api).status_code)
        connection.close()

    threads = [threading.Thread(target=call, args=(api,)) for api in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made() == 1
    assert 201 in statuses
    assert set(statuses) <= {201, 409}
