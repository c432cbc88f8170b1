"""Workers die without a word; nothing is lost and nothing is doubled."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from obsrv.demo.api import Api
from obsrv.demo.receiver import Receiver
from obsrv.demo.stack import Stack
from obsrv.demo.story import OVER, Story
from tests.shop.server import ScriptedShop

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
# What the issue allows for another worker to finish the page.
RECOVERY_SECONDS = 75


def crawl_workers(stack: Stack) -> list[psutil.Process]:
    children = psutil.Process(stack.pid).children(recursive=True)
    return [child for child in children if "crawl@" in " ".join(child.cmdline())]


def test_a_worker_killed_mid_slice_loses_and_doubles_nothing(
    tmp_path: Path, shop: ScriptedShop, receiver: Receiver
) -> None:
    tmp_path.chmod(0o755)
    pace = {"CRAWL_DEFAULT_DELAY_SECONDS": "0.5", "OBSRV_EMBEDDED_THROW_AWAY": "true"}
    with Stack(tmp_path / "var", **pace) as stack:
        api = Api(stack.url, stack.api_key)
        story = Story(api, shop, receiver)
        list(story.register())
        list(story.discover())
        ids = [candidate["id"] for candidate in story.candidates()]
        api.post("/candidates/bulk", {"action": "approve", "ids": ids})
        (job,) = api.get(f"/jobs?kind=baseline&website={story.website['id']}")["items"]
        api.wait(f"/jobs/{job['id']}", lambda j: j["processed"] >= 2)
        victims = crawl_workers(stack)
        assert victims
        for victim in victims:
            victim.kill()
        killed_at = time.monotonic()
        done = api.wait(f"/jobs/{job['id']}", lambda j: j["status"] in OVER, seconds=120)
        assert time.monotonic() - killed_at < RECOVERY_SECONDS
        assert (done["status"], done["processed"]) == ("success", len(ids))
        for product_id in ids:
            assert len(api.get(f"/products/{product_id}/history")["items"]) == 1

        list(story.change())
        list(story.hear())
        heard = [r.event["id"] for r in receiver.deliveries if r.type == "product.price_changed"]
        assert len(set(heard)) == 1
