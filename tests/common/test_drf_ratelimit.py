from __future__ import annotations

import threading
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts import keys
from common.drf import ratelimit
from common.ids import uuid7
from tests.factories.accounts import ApiKeyFactory
from tests.factories.static import static_root  # noqa: F401


def test_the_window_slides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratelimit, "WINDOW_SECONDS", 1)
    name = uuid7().hex
    assert [ratelimit.take(name, 2).allowed for _ in range(3)] == [True, True, False]
    import time

    time.sleep(1.05)
    assert ratelimit.take(name, 2).allowed


def test_many_at_once_get_exactly_the_limit() -> None:
    name = uuid7().hex
    allowed: list[bool] = []

    def hammer() -> None:
        allowed.extend(ratelimit.take(name, 50).allowed for _ in range(25))

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(allowed) == 100
    assert sum(allowed) == 50


def test_a_lowered_limit_refuses_without_going_negative() -> None:
    name = uuid7().hex
    for _ in range(5):
        ratelimit.take(name, 5)
    rate = ratelimit.take(name, 2)
    assert not rate.allowed
    assert rate.remaining == 0


@pytest.mark.django_db
def test_a_key_over_its_rate_gets_429_and_every_answer_tells_the_rate() -> None:
    plaintext = keys.new_plaintext()
    ApiKeyFactory.create(plaintext=plaintext, rate_limit_rpm=2)
    api = APIClient()
    api.credentials(HTTP_X_API_KEY=plaintext)
    answers = [api.get(path) for path in ("/api/v1/me", "/api/v1/clients", "/api/v1/me")]
    assert [answer.status_code for answer in answers] == [200, 403, 429]
    assert {answer["RateLimit-Policy"] for answer in answers} == {'"default";q=2;w=60'}
    assert answers[0]["RateLimit"] == '"default";r=1;t=60'
    assert answers[1]["RateLimit"].startswith('"default";r=0;t=')
    assert answers[2].json()["code"] == "RATE_LIMITED"
    assert 0 < int(answers[2]["Retry-After"]) <= 60


def test_without_redis_nobody_is_refused(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    assert all(ratelimit.take("x", 1).allowed for _ in range(3))
