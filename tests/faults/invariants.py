"""What must be true after any fault: nothing lost, nothing doubled, manners kept."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.rig import DELAY_SECONDS, Rig

# The shop notes a request when its own loop comes to it, not when it was sent.
GAP_TOLERANCE_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Found:
    checks: int
    events: int
    received: int
    smallest_gap: float


def check(rig: Rig, *, rounds: int = 1) -> Found:
    """After the first prices and ``rounds`` of new ones, all of which were crawled."""
    products = len(rig.shop.slugs) * len(rig.hosts)
    checks = one_history_row_per_check(rig, expected=products * (1 + rounds))
    events = one_event_per_change(rig, expected=products * rounds)
    received = every_event_received_under_one_id(rig)
    no_work_left_over(rig)
    return Found(checks, events, received, gaps_kept(rig))


def one_history_row_per_check(rig: Rig, *, expected: int) -> int:
    rows = [str(row[0]) for row in rig.sql("SELECT crawl_task_id FROM monitoring_producthistory")]
    done = "SELECT id FROM crawling_crawltask WHERE purpose = 'product' AND status = 'completed'"
    assert sorted(rows) == sorted(str(row[0]) for row in rig.sql(done))
    assert len(rows) == len(set(rows)) == expected
    return len(rows)


def one_event_per_change(rig: Rig, *, expected: int) -> int:
    kind = "SELECT product_id, new FROM monitoring_change WHERE kind = 'price_changed'"
    changes = rig.sql(kind)
    assert len(changes) == len(set(changes)) == expected
    told = rig.sql("SELECT id FROM notifications_event WHERE type = 'product.price_changed'")
    assert len(told) == expected
    numbers = rig.sql("SELECT sequence FROM notifications_event ORDER BY sequence")
    assert [row[0] for row in numbers] == list(range(1, len(numbers) + 1))
    return len(told)


def every_event_received_under_one_id(rig: Rig) -> int:
    wanted = {
        f"evt_{row[0].hex}"
        for row in rig.sql("SELECT DISTINCT event_id FROM notifications_delivery")
    }
    rig.until(lambda: wanted <= {r.event["id"] for r in rig.receiver.deliveries})
    by_change: dict[tuple[str, str, str], set[str]] = {}
    for received in rig.receiver.deliveries:
        assert received.verified
        if change := received.event["data"].get("change"):
            key = (received.type, received.event["data"]["object"]["id"], str(change["new"]))
            by_change.setdefault(key, set()).add(received.event["id"])
    assert all(len(ids) == 1 for ids in by_change.values())
    return len(rig.receiver.deliveries)


def no_work_left_over(rig: Rig) -> None:
    unfinished = "status NOT IN ('completed', 'failed', 'cancelled')"
    query = f"SELECT url, status FROM crawling_crawltask WHERE {unfinished}"
    assert rig.sql(query) == []
    assert rig.sql("SELECT url FROM crawling_crawltask WHERE leased_until IS NOT NULL") == []


def gaps_kept(rig: Rig) -> float:
    for host in rig.hosts:
        rig.stack.manage("ledger", host, "--check")
    smallest = min(gap for host in rig.hosts for gap in rig.shop.gaps(host))
    assert smallest >= DELAY_SECONDS - GAP_TOLERANCE_SECONDS
    return smallest
