"""What operators do to schedules beside editing them: run now, switch on and off."""

from __future__ import annotations

import orjson
from celery import current_app
from django.db import transaction
from django_celery_beat.models import PeriodicTask
from kombu.exceptions import OperationalError

from accounts import audit
from accounts.audit import Actor
from common.errors import InvalidState
from monitoring import websites
from monitoring.models import Website


def run_now(task: PeriodicTask, *, actor: Actor) -> None:
    """A website is crawled beside its schedule: a message alone would find no slot due."""
    website = website_of(task)
    if website is not None:
        websites.crawl_now(website, actor=actor)
        return
    current_app.loader.import_default_modules()
    found = current_app.tasks.get(task.task)
    if found is None:
        raise InvalidState("There is no such task in this installation: correct its name.")
    with transaction.atomic():
        audit.record(actor, "run", task)
        try:
            found.apply_async(
                args=orjson.loads(task.args),
                kwargs=orjson.loads(task.kwargs),
                headers={"periodic_task_name": task.name},
                # Who asked for it wants to see what came of it: Task results.
                ignore_result=False,
                **({"queue": task.queue} if task.queue else {}),
            )
        except (OperationalError, OSError) as error:
            raise InvalidState("The broker does not answer: try again when it is back.") from error


def switch(task: PeriodicTask, *, on: bool, actor: Actor) -> None:
    """The schedule of a website is off while the website is paused, and only then."""
    website = website_of(task)
    if website is not None:
        (websites.resume if on else websites.pause)(website, actor=actor)
        return
    if task.enabled == on:
        raise InvalidState(f"It is switched {'on' if on else 'off'} already.")
    with transaction.atomic():
        before, task.enabled = {"enabled": task.enabled}, on
        # Saving tells beat, which an update in place would not.
        task.save()
        audit.record(actor, "update", task, before=before, after={"enabled": on})


def website_of(task: PeriodicTask) -> Website | None:
    return getattr(task, "website", None)
