"""Processes die, freeze and double, servers go away: the same must be true afterwards."""

from __future__ import annotations

import random
import signal
import time

import psutil
import pytest
import redis

from obsrv.embedded import Postgres, Valkey
from tests.faults import invariants
from tests.faults.conftest import Tell
from tests.faults.rig import RECOVERY_SECONDS, WORKER, Rig, crawl_workers

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
LEASE_SECONDS = 30


def test_crawl_workers_killed_again_and_again(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    for _ in range(4):
        time.sleep(random.uniform(0.5, 3))
        for victim in crawl_workers(rig.stack):
            victim.kill()
    tell("4 x kill -9 of all crawl workers", rig.finish(), invariants.check(rig))


def test_workers_told_to_stop_hand_over_what_they_hold(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    for pages in (3, 9):
        rig.await_pages(pages)
        # Those of the first time are started again after a pause.
        rig.until(lambda: bool(crawl_workers(rig.stack)))
        workers = crawl_workers(rig.stack)
        leaders = [worker for worker in workers if worker.parent() not in workers]
        assert leaders
        for leader in leaders:
            leader.terminate()
        # A slice ends by itself, and hands its last batch over.
        assert psutil.wait_procs(leaders, timeout=RECOVERY_SECONDS)[1] == []
    tell("2 x SIGTERM to all crawl workers", rig.finish(), invariants.check(rig))


def test_a_worker_frozen_past_its_lease_writes_nothing_it_lost(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    rig.await_pages(6)
    frozen = crawl_workers(rig.stack)
    for worker in frozen:
        worker.suspend()
    frozen_at = time.monotonic()
    rig.start(*WORKER, "-n", "second@%h")
    took = rig.finish()
    time.sleep(max(0.0, LEASE_SECONDS + 5 - (time.monotonic() - frozen_at)))
    before = len(rig.shop.log)
    for worker in frozen:
        worker.resume()
    time.sleep(5)
    assert len(rig.shop.log) == before
    tell("SIGSTOP past the lease, then SIGCONT", took, invariants.check(rig))


def test_a_worker_that_wakes_up_beside_its_successor_asks_nobody(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    rig.await_pages(3)
    frozen = crawl_workers(rig.stack)
    for worker in frozen:
        worker.suspend()
    rig.start(*WORKER, "-n", "second@%h")
    asked = len(rig.shop.log)
    rig.until(lambda: len(rig.shop.log) > asked + 2)
    for worker in frozen:
        worker.resume()
    tell("SIGCONT while a successor crawls", rig.finish(), invariants.check(rig))


def test_more_workers_than_domains_keep_the_gaps(rig: Rig, tell: Tell) -> None:
    for name in ("second", "third"):
        rig.start(*WORKER, "-n", f"{name}@%h")
    time.sleep(8)
    rig.crawl_new_prices()
    took = rig.finish()
    rig.crawl_new_prices()
    tell("3 workers on 3 domains", took + rig.finish(), invariants.check(rig, rounds=2))


def test_a_broker_that_is_emptied_loses_nothing(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    with redis.Redis.from_url(rig.layout.redis_url) as broker:
        for _ in range(5):
            broker.flushall()
            time.sleep(1)
    tell("5 x broker emptied", rig.finish(), invariants.check(rig))


def test_a_broker_that_is_away_stops_nothing_for_good(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    rig.await_pages(3)
    broker = Valkey(rig.layout)
    broker.stop()
    time.sleep(10)
    broker.ensure_running()
    tell("broker away for 10 s", rig.finish(), invariants.check(rig))


def test_a_database_restarted_in_immediate_mode_loses_nothing(rig: Rig, tell: Tell) -> None:
    rig.crawl_new_prices()
    database = Postgres(rig.layout)
    for pages in (3, 6):
        rig.await_pages(pages)
        pid = database.running_pid()
        assert pid
        psutil.Process(pid).send_signal(signal.SIGQUIT)
        psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
        database.ensure_running()
    tell("2 x database restarted (immediate)", rig.finish(), invariants.check(rig))


def test_two_beats_double_nothing(rig: Rig, tell: Tell) -> None:
    rig.start("beat", "-l", "INFO")
    for website in rig.websites:
        rig.api.put(f"/websites/{website}/schedule", {"every_seconds": 10})
    time.sleep(25)
    for website in rig.websites:
        rig.api.put(f"/websites/{website}/schedule", {"every_seconds": 86_400})
    doubled = (
        "SELECT website_id, date_trunc('second', created_at) FROM crawling_crawljob"
        " WHERE kind = 'monitor' GROUP BY 1, 2 HAVING count(*) > 1"
    )
    assert rig.sql(doubled) == []
    unfinished = (
        "SELECT count(*) FROM crawling_crawljob WHERE status IN ('queued', 'pending', 'running')"
    )
    rig.until(lambda: rig.sql(unfinished) == [(0,)])
    done = rig.sql("SELECT id FROM crawling_crawltask WHERE purpose = 'product'")
    invariants.one_history_row_per_check(rig, expected=len(done))
    rig.crawl_new_prices()
    took = rig.finish()
    products = len(rig.shop.slugs) * len(rig.hosts)
    found = invariants.Found(
        invariants.one_history_row_per_check(rig, expected=len(done) + products),
        invariants.one_event_per_change(rig, expected=products),
        invariants.every_event_received_under_one_id(rig),
        invariants.gaps_kept(rig),
    )
    tell("two beats", took, found)
    assert took < RECOVERY_SECONDS
