from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from monitoring import history
from obsrv.first_start import ensure_groups
from obsrv.schedules import ensure_schedules


class Command(BaseCommand):
    help = "Makes the schedules, groups and history partitions Obsrv needs, where they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        ensure_groups()
        made = ensure_schedules() + history.make_months()
        self.stdout.write(f"Made: {', '.join(made)}." if made else "Nothing was missing.")
