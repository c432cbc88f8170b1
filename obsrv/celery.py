from __future__ import annotations

import os

from celery import Celery
from celery.signals import beat_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obsrv.settings")

app = Celery("obsrv")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@beat_init.connect
def send_first_heartbeat(**_kwargs: object) -> None:
    """At once, and not only when the schedule says so: somebody waits for readiness."""
    app.send_task(
        "obsrv.tasks.heartbeat", headers={"periodic_task_name": "obsrv: heartbeat"}, expires=20
    )
