"""The story of Obsrv, from a registered shop to a verified webhook, told over the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from obsrv.demo.api import Api
from obsrv.demo.receiver import Received, Receiver
from obsrv.demo.shop import DemoShop

OVER = ("success", "partial_success", "failed", "cancelled")
# The shortest schedule there is: nobody wants to wait for the demo.
EVERY_SECONDS = 10


class Story:
    """Each chapter does something real and yields the lines that tell it."""

    def __init__(self, api: Api, shop: DemoShop, receiver: Receiver) -> None:
        self.api, self.shop, self.receiver = api, shop, receiver
        self.website: dict[str, Any] = {}

    def register(self) -> Iterator[str]:
        # The only moment a secret is shown: the receiver needs it to verify.
        self.receiver.secrets.append(self.api.post("/me/rotate-webhook-secret")["secret"])
        self.website = self.api.post(
            "/websites",
            {
                "base_url": self.shop.url,
                "name": "Demo shop",
                "webhook_endpoint_url": f"{self.receiver.url}/hooks",
            },
        )
        yield f"registered {self.shop.url} ({self.website['status']})"

    def discover(self) -> Iterator[str]:
        job = self._finished(self.website["discovery_job_id"])
        found = self.candidates()
        yield f"{job['processed']} pages crawled, {len(found)} products found"
        for candidate in found[:3]:
            yield f"  {candidate['name']}: {money(candidate)} ({candidate['discovery_reason']})"

    def approve(self) -> Iterator[str]:
        ids = [candidate["id"] for candidate in self.candidates()]
        self.api.post("/candidates/bulk", {"action": "approve", "ids": ids})
        (job,) = self.api.get(f"/jobs?kind=baseline&website={self.website['id']}")["items"]
        done = self._finished(job["id"])
        yield f"approved {len(ids)}, baseline of {done['processed']} taken"

    def change(self) -> Iterator[str]:
        self.shop.set_price("desk-lamp", "29.90")
        self.shop.set_stock("stoneware-mug", in_stock=False)
        yield "the shop drops the desk lamp to 29.90 EUR and sells out of the stoneware mug"
        schedule = self.api.put(
            f"/websites/{self.website['id']}/schedule", {"every_seconds": EVERY_SECONDS}
        )
        yield f"schedule: {schedule['description']}"

    def hear(self) -> Iterator[str]:
        for kind in ("product.price_changed", "product.stock_changed"):
            for received in self.receiver.wait_for(type=kind, timeout=60):
                yield told(received)

    def candidates(self) -> list[dict[str, Any]]:
        page = self.api.get(f"/websites/{self.website['id']}/candidates?limit=200")
        items: list[dict[str, Any]] = page["items"]
        return items

    def _finished(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.api.wait(f"/jobs/{job_id}", lambda j: j["status"] in OVER)
        return job


def money(product: dict[str, Any]) -> str:
    return f"{product['price']} {product['currency']}"


def told(received: Received) -> str:
    data, mark = received.event["data"], "valid ✔" if received.verified else "INVALID"
    change = data["change"]
    step = f"{change['old']} → {change['new']}"
    pct = f" ({change['pct']} %)" if change["pct"] else ""
    return f"{received.type}  {data['object']['name']}  {step}{pct}  signature {mark}"
