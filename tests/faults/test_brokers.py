"""The broker carries wake-ups only: another kind does as well, and an emptied one loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from obsrv.demo.api import Api
from obsrv.demo.receiver import Receiver
from obsrv.demo.stack import Stack
from obsrv.demo.story import OVER, Story
from obsrv.embedded import Layout
from tests.faults.rabbit import Rabbit, server
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
THROW_AWAY = {"OBSRV_EMBEDDED_THROW_AWAY": "true"}
without_rabbit = pytest.mark.skipif(
    server() is None, reason="rabbitmq-server is not installed on this machine"
)


@without_rabbit
def test_the_story_passes_on_rabbitmq(
    tmp_path: Path, shop: ScriptedShop, receiver: Receiver
) -> None:
    tmp_path.chmod(0o755)
    with (
        Rabbit(tmp_path / "rabbit") as rabbit,
        Stack(tmp_path / "var", CELERY_BROKER_URL=rabbit.url, **THROW_AWAY) as stack,
    ):
        story = Story(Api(stack.url, stack.api_key), shop, receiver)
        for chapter in (story.register, story.discover, story.approve, story.change, story.hear):
            list(chapter())
        assert [r.type for r in receiver.deliveries].count("product.price_changed") == 1
        assert all(received.verified for received in receiver.deliveries)
        found = stack.manage("doctor", "--json")
        assert "RabbitMQ answers" in found
        assert "no worker takes messages" not in found


def test_a_broker_flushed_mid_crawl_loses_nothing(
    tmp_path: Path, shop: ScriptedShop, receiver: Receiver
) -> None:
    tmp_path.chmod(0o755)
    var = tmp_path / "var"
    with Stack(var, CRAWL_DEFAULT_DELAY_SECONDS="0.3", **THROW_AWAY) as stack:
        api = Api(stack.url, stack.api_key)
        story = Story(api, shop, receiver)
        list(story.register())
        list(story.discover())
        ids = [candidate["id"] for candidate in story.candidates()]
        api.post("/candidates/bulk", {"action": "approve", "ids": ids})
        (job,) = api.get(f"/jobs?kind=baseline&website={story.website['id']}")["items"]
        api.wait(f"/jobs/{job['id']}", lambda j: j["processed"] >= 1)
        with redis.Redis.from_url(Layout(var, throw_away=True).redis_url) as broker:
            broker.flushall()
        done = api.wait(f"/jobs/{job['id']}", lambda j: j["status"] in OVER, seconds=75)
        assert (done["status"], done["processed"]) == ("success", len(ids))
        for product_id in ids:
            assert len(api.get(f"/products/{product_id}/history")["items"]) == 1
        list(story.change())
        list(story.hear())
        heard = [r.event["id"] for r in receiver.deliveries if r.type == "product.price_changed"]
        assert len(set(heard)) == 1
