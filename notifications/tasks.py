from __future__ import annotations

from celery import shared_task

from common.wakeups import wake
from notifications import claims, delivery, notices, summaries
from notifications.events import NOTIFIER, SENDER


@shared_task(name="notifications.tasks.deliver_due")
def deliver_due() -> None:
    # What is left but cannot be taken now must not keep the queue spinning.
    if delivery.deliver_due() and claims.has_due():
        wake(SENDER)


@shared_task(name="notifications.tasks.sweep_deliveries")
def sweep_deliveries() -> None:
    if claims.has_due():
        wake(SENDER)
    if notices.has_due():
        wake(NOTIFIER)


@shared_task(name="notifications.tasks.send_notices")
def send_notices() -> None:
    if notices.send_due() and notices.has_due():
        wake(NOTIFIER)


@shared_task(name="notifications.tasks.publish_summaries")
def publish_summaries() -> int:
    return summaries.publish_due()
