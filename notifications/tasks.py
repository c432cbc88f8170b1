from __future__ import annotations

from celery import shared_task

from common.wakeups import wake
from notifications import delivery
from notifications.events import SENDER


@shared_task(name="notifications.tasks.deliver_due")
def deliver_due() -> None:
    # What is left but cannot be taken now must not keep the queue spinning.
    if delivery.deliver_due() and delivery.has_due():
        wake(SENDER)


@shared_task(name="notifications.tasks.sweep_deliveries")
def sweep_deliveries() -> None:
    if delivery.has_due():
        wake(SENDER)
