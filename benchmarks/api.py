"""What a request costs before it does anything, and what a registration costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from django.conf import settings
from rest_framework.test import APIClient

from accounts import keys
from accounts.audit import SYSTEM
from accounts.models import Client
from benchmarks.figures import Figure, figure
from monitoring.models import Website

KEY_CHECK_MS = 2.0
REGISTRATION_MS = 1000.0


def measure(*, quick: bool) -> list[Figure]:
    settings.ALLOWED_HOSTS = ["testserver"]
    rounds = 50 if quick else 500
    Client.objects.filter(email="bench@example.com").delete()
    client = Client.objects.create(
        name="Bench",
        email="bench@example.com",
        max_websites=100,
        webhook_secret_current="whsec_eA==",
    )
    _, plain = keys.issue(
        client=client, name="bench", scopes=["admin"], actor=SYSTEM, rate_limit_rpm=10**6
    )
    checks = [milliseconds(lambda: keys.find(plain)) for _ in range(rounds)]
    registrations = [milliseconds(partial(register, plain, n)) for n in range(20)]
    Website.objects.filter(client=client).delete()
    return [
        figure("API key check", checks, "ms", peer=f"limit {KEY_CHECK_MS}", against=KEY_CHECK_MS),
        figure(
            "registration of a website",
            registrations,
            "ms",
            peer=f"limit {REGISTRATION_MS}",
            against=REGISTRATION_MS,
        ),
    ]


def register(key: str, number: int) -> None:
    body = {"base_url": f"http://shop{number}.localhost:8099/"}
    answer = APIClient(headers={"X-API-Key": key}).post("/api/v1/websites", body, format="json")
    assert answer.status_code == 201, answer.content


def milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000
