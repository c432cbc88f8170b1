"""How long news is on its way while a shop is crawled at full speed: workers as in production
crawl and deliver, the receiver notes when each delivery comes, and a trigger that fires with
the commit of its snapshot when the clock started."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import Client
from accounts.webhook_secrets import new_secret
from benchmarks.figures import Figure, figure
from benchmarks.pipeline import watch
from benchmarks.receiver import BulkReceiver
from common.partitions import ensure_partitions
from crawling import tasks as crawl_tasks
from crawling.models import CrawlJob
from crawling.slices import run_slice
from monitoring import runs
from monitoring.models import ProductHistory, Website
from notifications import tasks as deliver_tasks
from notifications.models import Delivery, WebhookEndpoint
from obsrv import queues
from tests.shop.bulk import BulkShop

# What issue 6 asks of this machine.
GOAL_SECONDS = 2.0
ENDPOINTS = 5
CHANGED = 0.1
PATIENCE_SECONDS = 180
LOOK_SECONDS = 0.1
SWEEP_SECONDS = 5.0
WATCH_COMMITS = """
CREATE TABLE IF NOT EXISTS bench_commit (
    delivery uuid, at timestamptz DEFAULT clock_timestamp()
);
CREATE OR REPLACE FUNCTION bench_note_commit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO bench_commit (delivery) VALUES (NEW.id); RETURN NULL; END $$;
DROP TRIGGER IF EXISTS bench_commit ON notifications_delivery;
CREATE CONSTRAINT TRIGGER bench_commit AFTER INSERT ON notifications_delivery
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bench_note_commit();
"""
STOP_WATCHING = "DROP TRIGGER bench_commit ON notifications_delivery; DROP TABLE bench_commit"
QUEUES = ("crawl", "deliver")


def measure(*, quick: bool) -> list[Figure]:
    products, rounds = (1000, 3) if quick else (2000, 5)
    ensure_partitions(ProductHistory._meta.db_table, now=timezone.now())
    halves, nearly_all, rates = [], [], []
    with BulkShop(products=products) as shop, BulkReceiver() as receiver:
        website = watch(shop.urls)
        runs.start_monitoring(website, triggered_by="manual")
        run_slice(300)
        listen(website.client, receiver.url)
        with watched_commits(), workers():
            # The first round warms the workers up.
            for turn in range(rounds + 1):
                shop.reprice(CHANGED)
                rate, waits = run(website, receiver)
                if turn:
                    shares = statistics.quantiles(waits, n=100)
                    halves.append(shares[49])
                    nearly_all.append(shares[98])
                    rates.append(rate)
    name = "from the commit to the receipt under a crawl"
    return [
        figure(f"p99 {name}", nearly_all, "s", peer=f"goal {GOAL_SECONDS}", against=GOAL_SECONDS),
        figure(f"median {name}", halves, "s", peer="p99", against=statistics.median(nearly_all)),
        figure("pages crawled meanwhile", rates, "pages/s", peer="itself", against=0),
    ]


def listen(client: Client, url: str) -> None:
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(
            client=client, url=f"{url}/{n}", events=["product.*"], secret_current=new_secret()
        )
        for n in range(ENDPOINTS)
    )


@contextmanager
def workers() -> Iterator[None]:
    """One that crawls and one that delivers, started by messages as in production."""
    celery = [sys.executable, "-m", "celery", "-A", "obsrv", "worker", "-c", "1", "-l", "WARNING"]
    environment = os.environ | {"WEBHOOK_ALLOW_HTTP": "true"}
    children = [
        subprocess.Popen(
            [*celery, "--without-gossip", "--without-mingle", "-n", f"{queue}@bench", "-Q", queue],
            env=environment,
            cwd=settings.BASE_DIR,
        )
        for queue in QUEUES
    ]
    try:
        wait_for(lambda: not set(QUEUES) & set(queues.unattended()), "no worker comes")
        yield
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
        for child in children:
            child.wait()


@contextmanager
def watched_commits() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(WATCH_COMMITS)
        yield
        cursor.execute(STOP_WATCHING)


def committed() -> dict[str, float]:
    """When each delivery was committed, since this was asked before."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM bench_commit RETURNING delivery, at")
        return {str(pk): at.timestamp() for pk, at in cursor.fetchall()}


def run(website: Website, receiver: BulkReceiver) -> tuple[float, list[float]]:
    """Pages per second of one crawl, and how long each of its deliveries was on its way."""
    receiver.receipts()
    committed()
    job = runs.start_monitoring(website, triggered_by="manual")
    assert job is not None
    live = CrawlJob.objects.live().filter(pk=job.pk)
    wait_for(lambda: not live.exists(), "the crawl does not end")
    job.refresh_from_db()
    assert job.started_at
    assert job.completed_at
    unsent = Delivery.objects.exclude(status="success")
    wait_for(lambda: not unsent.exists(), "deliveries are missing")
    commits = committed()
    waits = [at - commits[delivery] for at, delivery in receiver.receipts()]
    assert len(waits) == len(commits) > 0, (len(waits), len(commits))
    return job.total / (job.completed_at - job.started_at).total_seconds(), waits


def wait_for(condition: Callable[[], bool], problem: str) -> None:
    deadline, sweep_at = time.monotonic() + PATIENCE_SECONDS, 0.0
    while not condition():
        assert time.monotonic() < deadline, problem
        if time.monotonic() > sweep_at:
            # What beat does in production: a wake-up may come before its worker.
            crawl_tasks.sweep()
            deliver_tasks.sweep_deliveries()
            sweep_at = time.monotonic() + SWEEP_SECONDS
        time.sleep(LOOK_SECONDS)
