from __future__ import annotations

from django.conf import settings

from obsrv.management.commands.up import programs


def queues_of(command: list[str]) -> list[str]:
    return command[command.index("-Q") + 1].split(",") if "-Q" in command else []


def test_every_queue_has_a_worker_of_its_own() -> None:
    served = [queues_of(program.command) for program in programs()]
    routed = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    wanted = routed | {settings.CELERY_TASK_DEFAULT_QUEUE}
    assert sorted(queues for queues in served if queues) == sorted([name] for name in wanted)
