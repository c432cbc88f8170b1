from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from common.key_rotation import Tally, rotate_all


class Command(BaseCommand):
    help = (
        "Encrypts every stored secret with the first of FIELD_ENCRYPTION_KEYS. Put the new key"
        " first, restart, run this, then drop the old key. May be interrupted and run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        tallies = list(rotate_all())
        if options["json"]:
            self.stdout.write(json.dumps({"columns": [asdict(tally) for tally in tallies]}))
        else:
            Console(file=cast(Any, self.stdout)).print(_table(tallies))
        unreadable = sum(tally.unreadable for tally in tallies)
        if unreadable:
            raise CommandError(
                f"{unreadable} secrets cannot be read with any key: add the key they were"
                " written with to FIELD_ENCRYPTION_KEYS and run this again."
            )


def _table(tallies: list[Tally]) -> Table:
    table = Table("column", "rotated", "already current", "unreadable")
    for tally in tallies:
        counts = (tally.rotated, tally.current, tally.unreadable)
        table.add_row(f"{tally.table}.{tally.column}", *map(str, counts))
    return table
