from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from notifications.conformance import Grade, examine
from notifications.signing import SECRET_PREFIX


class Command(BaseCommand):
    help = "Sends good and bad deliveries to a webhook receiver and grades its answers."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="where the receiver listens")
        parser.add_argument("--secret", required=True, help="the secret the receiver knows")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["secret"].startswith(SECRET_PREFIX):
            raise CommandError(f"A secret starts with {SECRET_PREFIX}.")
        grades = asyncio.run(examine(options["url"], options["secret"]))
        passed = sum(grade.passed for grade in grades)
        if options["json"]:
            report = {"passed": passed, "of": len(grades), "grades": [asdict(g) for g in grades]}
            self.stdout.write(json.dumps(report))
        else:
            Console(file=cast(Any, self.stdout)).print(_table(grades))
        if passed < len(grades):
            raise CommandError(
                f"{passed} of {len(grades)} passed: see docs/webhooks.md for what is missing."
            )


def _table(grades: list[Grade]) -> Table:
    table = Table("delivery", "expected", "answered", "")
    for grade in grades:
        mark = "[green]passed[/]" if grade.passed else "[red]failed[/]"
        table.add_row(grade.name, grade.expected, str(grade.answered), mark)
    return table
