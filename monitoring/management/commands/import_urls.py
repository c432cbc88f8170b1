from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.audit import SYSTEM
from accounts.models import Client
from common.errors import Refused
from monitoring.imports import read_csv
from monitoring.watching import Line, import_urls


class Command(BaseCommand):
    help = (
        "Watches the product pages of a list: CSV with a column url, or one URL per line. "
        "Shows what would be done; --apply does it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="- reads the list from standard input")
        parser.add_argument("--client", required=True, help="e-mail address of the client")
        parser.add_argument("--website", type=uuid.UUID, help="else the one on each URL's host")
        parser.add_argument("--candidates", action="store_true", help="leave them for review")
        parser.add_argument("--apply", action="store_true", help="do it")

    def handle(self, *args: Any, **options: Any) -> None:
        client = Client.objects.filter(email=options["client"]).first()
        if client is None:
            raise CommandError(f"No client {options['client']}: name its e-mail address.")
        try:
            rows = read_csv(_text_of(options["file"]), required="url")
            lines = import_urls(
                client,
                [row.get("url", "") for row in rows],
                website_id=options["website"],
                approve=not options["candidates"],
                dry_run=not options["apply"],
                actor=SYSTEM,
            )
        except Refused as refused:
            raise CommandError(refused.detail) from refused
        self._show(lines, applied=options["apply"])

    def _show(self, lines: list[Line], *, applied: bool) -> None:
        for one in lines:
            self.stdout.write(f"{one.line}\t{one.result}\t{one.url}\t{one.detail}".rstrip())
        refused = sum(one.result == "refused" for one in lines)
        self.stdout.write(f"{len(lines) - refused} taken, {refused} refused.")
        if not applied:
            self.stdout.write("Nothing was changed: --apply does it.")


def _text_of(name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8: save it so.") from error
