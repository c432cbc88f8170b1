from __future__ import annotations

import json
import time

import pytest
import standardwebhooks
import stripe
from hypothesis import given
from hypothesis import strategies as st

from accounts.webhook_secrets import new_secret
from notifications.signing import BadSignature, signature_header, standard_headers, verify

BODY = json.dumps({"id": "evt_1", "object": "event", "type": "product.price_changed"}).encode()
NEW, OLD = new_secret(), new_secret()


@pytest.mark.parametrize("secret", [NEW, OLD], ids=["new", "old"])
def test_stripe_accepts_the_header_with_either_live_secret(secret: str) -> None:
    header = signature_header(BODY, secrets=[NEW, OLD], timestamp=int(time.time()))
    assert stripe.WebhookSignature.verify_header(BODY.decode(), header, secret, tolerance=300)
    assert stripe.Webhook.construct_event(BODY, header, secret)["id"] == "evt_1"


def test_stripe_refuses_a_secret_that_does_not_sign() -> None:
    header = signature_header(BODY, secrets=[NEW, OLD], timestamp=int(time.time()))
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(BODY.decode(), header, new_secret(), tolerance=300)


@pytest.mark.parametrize("secret", [NEW, OLD], ids=["new", "old"])
def test_standard_webhooks_accepts_the_headers_with_either_live_secret(secret: str) -> None:
    headers = standard_headers("evt_1", BODY, [NEW, OLD], int(time.time()))
    assert standardwebhooks.Webhook(secret).verify(BODY, headers)["id"] == "evt_1"


def test_standard_webhooks_refuses_a_changed_body() -> None:
    headers = standard_headers("evt_1", BODY, [NEW], int(time.time()))
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(NEW).verify(BODY + b" ", headers)


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=2**40))
def test_what_was_signed_is_verified_and_what_was_changed_is_not(body: bytes, at: int) -> None:
    header = signature_header(body, secrets=[NEW], timestamp=at)
    assert verify(body, header, secrets=[OLD, NEW], now=at + 300) == at
    with pytest.raises(BadSignature):
        verify(body + b".", header, secrets=[OLD, NEW], now=at)


@pytest.mark.parametrize("now", [1_000_301, 999_699])
def test_a_signature_older_or_newer_than_five_minutes_is_refused(now: int) -> None:
    header = signature_header(BODY, secrets=[NEW], timestamp=1_000_000)
    with pytest.raises(BadSignature):
        verify(BODY, header, secrets=[NEW], now=now)


@given(st.text(max_size=60))
def test_a_header_of_any_text_is_refused_without_another_error(header: str) -> None:
    with pytest.raises(BadSignature):
        verify(BODY, header, secrets=[NEW], now=0)
