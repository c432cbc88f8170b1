from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.errors import Refused
from obsrv import first_start


class Command(BaseCommand):
    help = "Makes groups, an operator and a first client with an API key; safe to run again."

    def add_arguments(self, parser: CommandParser) -> None:
        add_names(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            outcome = first_start.prepare(
                operator=options["operator"], client=options["client"], email=options["email"]
            )
        except Refused as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            told = asdict(outcome) | {"made_something": outcome.made_something}
            self.stdout.write(json.dumps(told))
            return
        for line in told_once(outcome) or ["Already done: nothing was made or changed."]:
            self.stdout.write(line)


def add_names(parser: CommandParser) -> None:
    parser.add_argument("--operator", default="operator", help="user name of the operator")
    parser.add_argument("--client", default="First client", help="name of the first client")
    parser.add_argument("--email", default="client@example.com", help="its e-mail address")


def told_once(outcome: first_start.Outcome) -> list[str]:
    """The secrets, for the only time they can be shown."""
    lines = []
    if outcome.operator_password:
        lines.append(f"Operator:      {outcome.operator}")
        lines.append(f"Password:      {outcome.operator_password}")
    if outcome.operator_key:
        lines.append(f"Operator key:  {outcome.operator_key}")
    if outcome.client_key:
        lines.append(f"Client:        {outcome.client}")
        lines.append(f"API key:       {outcome.client_key}")
    if lines:
        lines.append("Keep them: they are not shown again. A new password:")
        lines.append(f"manage.py changepassword {outcome.operator}; new keys: in the console.")
    return lines
