"""The walk: everything a user can see from registration to the webhook, with real web,
worker and beat processes on servers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import stripe

from obsrv.demo.api import Api, ApiError
from obsrv.demo.receiver import Received, Receiver
from obsrv.demo.stack import Stack
from obsrv.demo.story import Story
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.walk, pytest.mark.timeout(300)]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    tmp_path.chmod(0o755)
    with Stack(tmp_path / "var", OBSRV_EMBEDDED_THROW_AWAY="true") as running:
        yield running


def verified(received: Received, secret: str) -> bool:
    """As a client would: with Stripe's own library."""
    header = received.headers["X-Obsrv-Signature"]
    body = received.body.decode()
    return bool(stripe.WebhookSignature.verify_header(body, header, secret, 300))


def test_a_registered_shops_price_drop_reaches_the_client_as_a_signed_webhook(
    stack: Stack, shop: ScriptedShop, receiver: Receiver
) -> None:
    api = Api(stack.url, stack.api_key)
    story = Story(api, shop, receiver)

    list(story.register())
    assert story.website["status"] == "pending_approval"
    list(story.discover())
    assert len(story.candidates()) == len(shop.slugs)
    list(story.approve())
    website = api.get(f"/websites/{story.website['id']}")
    assert website["status"] == "active"
    assert website["approved_product_count"] == len(shop.slugs)
    assert not receiver_heard(receiver, "product.price_changed")

    list(story.change())
    (drop,) = receiver.wait_for(type="product.price_changed", timeout=60)
    (sold_out,) = receiver.wait_for(type="product.stock_changed", timeout=60)
    secret = receiver.secrets[0]
    assert verified(drop, secret)
    assert verified(sold_out, secret)
    change = drop.event["data"]["change"]
    assert (change["old"], change["new"]) == ("39.90", "29.90")
    product = drop.event["data"]["object"]
    assert (product["price"], product["currency"]) == ("29.90", "EUR")

    history = api.get(f"/products/{product['id']}/history")["items"]
    assert {row["price"] for row in history} == {"39.90", "29.90"}
    delivery = api.wait(
        "/deliveries?event_type=product.price_changed",
        lambda page: page["items"] and page["items"][0]["status"] == "success",
    )["items"][0]
    attempts = api.get(f"/deliveries/{delivery['id']}")["attempts"]
    assert [attempt["status_code"] for attempt in attempts] == [200]
    assert api.get("/changes")["items"]

    # After the next runs there is still one event: nothing changed again.
    runs = f"/jobs?kind=monitor&status=success&website={story.website['id']}"
    api.wait(runs, lambda page: len(page["items"]) >= 2)
    assert len(receiver_heard(receiver, "product.price_changed")) == 1
    with pytest.raises(ApiError, match="URL_BLOCKED"):
        api.post("/websites", {"base_url": "http://169.254.169.254/"})


def receiver_heard(receiver: Receiver, kind: str) -> list[Received]:
    return [received for received in receiver.deliveries if received.type == kind]
