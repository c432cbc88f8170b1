"""Deliveries: claimed from the table, sent, and the results written back in batches.

A process may die anywhere: what was sent and not written is sent again, with the same id.
"""

from __future__ import annotations

import time

from notifications.claims import BATCH, claim, has_due, has_paced
from notifications.results import record
from notifications.sending import Sender

POOL = 1000
# An endpoint with so many under way gets no more, so that a slow one leaves room for others.
ENDPOINT_BUSY = 100
COLLECT_SECONDS = 0.05
# A throttled endpoint is waited for this long, rather than left to the next sweep.
PACE_SECONDS = 1.0
IDLE_ROUNDS = 30


def deliver_due(max_seconds: float = 20) -> int:
    """Send what is due until nothing is left or time is up; answers how many tries were made."""
    if not has_due():
        return 0
    deadline = time.monotonic() + max_seconds
    tries = idle_rounds = 0
    with Sender(connections=POOL) as sender:
        while True:
            in_time = time.monotonic() < deadline
            if in_time:
                _refill(sender)
            if sender.in_flight:
                tries += _settle(sender)
                idle_rounds = 0
            elif in_time and idle_rounds < IDLE_ROUNDS and has_paced(within_seconds=PACE_SECONDS):
                time.sleep(COLLECT_SECONDS)
                idle_rounds += 1
            else:
                return tries


def _refill(sender: Sender) -> None:
    room = POOL - sender.in_flight.total()
    if room < BATCH:
        return
    busy = [pk for pk, count in sender.in_flight.items() if count >= ENDPOINT_BUSY]
    parcels = claim(busy=busy)
    if parcels:
        sender.submit(parcels)


def _settle(sender: Sender) -> int:
    outcomes = sender.collect(wait_seconds=COLLECT_SECONDS, limit=BATCH)
    if outcomes:
        record(outcomes)
    return len(outcomes)
