from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from common.partitions import ensure_partitions
from obsrv.schedules import ensure_schedules
from obsrv.tasks import HISTORY_TABLE


class Command(BaseCommand):
    help = "Makes the schedules and history partitions Obsrv needs, where they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        made = ensure_schedules() + ensure_partitions(HISTORY_TABLE, now=timezone.now())
        self.stdout.write(f"Made: {', '.join(made)}." if made else "Nothing was missing.")
