from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from monitoring import retention


class Command(BaseCommand):
    help = "Removes history past each website's retention, after its statistics are kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would go, keep it")

    def handle(self, *args: Any, **options: Any) -> None:
        steps = retention.apply(dry_run=options["dry_run"])
        for step in steps:
            self.stdout.write(f"{step.what}: {step.rows}, before {step.before:%Y-%m-%d %H:%M} UTC")
        if not steps:
            self.stdout.write("Nothing is past its retention.")
